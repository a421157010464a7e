// Package decoded remembers decoded records by their documents, for stores that read the same
// document several times: a record is read by each step of its run, and changes in some of them.
package decoded

import (
	"bytes"
	"hash/maphash"
	"sync"

	"github.com/sortie-dev/sortie/shared/run"
)

// Runs remembers the last runs. It is safe for concurrent use. Its runs share what they point
// to: like a run from a port, none is changed in place.
type Runs struct {
	limit int
	seed  maphash.Seed

	mu           sync.Mutex
	young, aging map[uint64]entry
}

type entry struct {
	doc []byte
	run *run.Run
}

// New returns Runs that remember at least the last limit runs, and at most twice as many.
func New(limit int) *Runs {
	return &Runs{limit: limit, seed: maphash.MakeSeed(), young: map[uint64]entry{}, aging: map[uint64]entry{}}
}

// Put remembers the run of a document. Neither may change any more.
func (d *Runs) Put(doc []byte, r *run.Run) {
	key := maphash.Bytes(d.seed, doc)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.young) >= d.limit { // forget the older half
		d.aging, d.young = d.young, make(map[uint64]entry, d.limit)
	}
	d.young[key] = entry{doc, r}
}

// Get returns the run of a document, if it is remembered.
func (d *Runs) Get(doc []byte) (run.Run, bool) {
	key := maphash.Bytes(d.seed, doc)
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.young[key]
	if !ok {
		found, ok = d.aging[key]
	}
	if !ok || !bytes.Equal(found.doc, doc) {
		return run.Run{}, false
	}
	return *found.run, true
}
