// Package decoded caches decoded documents, for stores that read the same document several
// times. Each step of a run reads its record, and only some steps change it. A batch of events
// is read once for each webhook.
package decoded

import (
	"bytes"
	"hash/maphash"
	"sync"
)

// Documents caches the decoded values of recent documents. It is safe for concurrent use. The
// values that Get returns share memory, so the caller must not change what they point to.
type Documents[T any] struct {
	most, size int
	seed       maphash.Seed

	mu           sync.Mutex
	young, aging map[uint64]entry[T]
	bytes        int // size of the documents in young
}

type entry[T any] struct {
	doc   []byte
	value *T
}

// New returns an empty cache. It keeps at least the newest documents up to most documents and
// size bytes in total, and at most twice as many. It does not keep a document of more than size
// bytes.
func New[T any](most, size int) *Documents[T] {
	return &Documents[T]{most: most, size: size, seed: maphash.MakeSeed(), young: map[uint64]entry[T]{}, aging: map[uint64]entry[T]{}}
}

// Put stores the value of a document. The caller must not change either afterwards.
func (d *Documents[T]) Put(doc []byte, value *T) {
	if len(doc) > d.size {
		return
	}
	key := maphash.Bytes(d.seed, doc)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes -= len(d.young[key].doc)
	delete(d.young, key)
	if len(d.young) >= d.most || d.bytes+len(doc) > d.size { // drop the older half
		d.aging, d.young, d.bytes = d.young, make(map[uint64]entry[T], len(d.young)), 0
	}
	d.young[key] = entry[T]{doc, value}
	d.bytes += len(doc)
}

// Get returns the value of a document. ok is false if the cache does not contain it.
func (d *Documents[T]) Get(doc []byte) (value T, ok bool) {
	key := maphash.Bytes(d.seed, doc)
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.young[key]
	if !ok {
		found, ok = d.aging[key]
	}
	if !ok || !bytes.Equal(found.doc, doc) {
		return value, false
	}
	return *found.value, true
}
