// Package decoded remembers decoded documents, for stores that read the same document several
// times: a record is read by each step of its run and changes in some of them, a batch of
// events is read for each webhook.
package decoded

import (
	"bytes"
	"hash/maphash"
	"sync"
)

// Documents remembers what the last documents contain. It is safe for concurrent use. Its
// values share what they point to: like a value from a port, none is changed in place.
type Documents[T any] struct {
	most, size int
	seed       maphash.Seed

	mu           sync.Mutex
	young, aging map[uint64]entry[T]
	bytes        int // of the young documents
}

type entry[T any] struct {
	doc   []byte
	value *T
}

// New returns Documents that remember at least the last ones: at most this many, with at most
// size bytes. At times they remember twice as much. A document with more bytes is not
// remembered.
func New[T any](most, size int) *Documents[T] {
	return &Documents[T]{most: most, size: size, seed: maphash.MakeSeed(), young: map[uint64]entry[T]{}, aging: map[uint64]entry[T]{}}
}

// Put remembers the value of a document. Neither may change any more.
func (d *Documents[T]) Put(doc []byte, value *T) {
	if len(doc) > d.size {
		return
	}
	key := maphash.Bytes(d.seed, doc)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.young) >= d.most || d.bytes+len(doc) > d.size { // forget the older half
		d.aging, d.young, d.bytes = d.young, make(map[uint64]entry[T], len(d.young)), 0
	}
	d.young[key] = entry[T]{doc, value}
	d.bytes += len(doc)
}

// Get returns the value of a document, if it is remembered.
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
