package sqlite

import (
	"bytes"
	"hash/maphash"
	"sync"

	"github.com/sortie-dev/sortie/shared/run"
)

// decoded remembers the records of the last commits by their documents: what this process has
// encoded it need not decode. While a commit of a run is under way, its record is in the file
// alone, and every reader of the run would decode it.
type decoded struct {
	seed maphash.Seed

	mu           sync.Mutex
	young, aging map[uint64]coded
}

// coded is a record and its document.
type coded struct {
	doc []byte
	run run.Run
}

func newDecoded() *decoded {
	return &decoded{seed: maphash.MakeSeed(), young: map[uint64]coded{}, aging: map[uint64]coded{}}
}

// put remembers a record. It makes room by forgetting the older half.
func (d *decoded) put(doc []byte, r run.Run) {
	key := maphash.Bytes(d.seed, doc)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.young) >= newestLimit {
		d.aging, d.young = d.young, make(map[uint64]coded, newestLimit)
	}
	d.young[key] = coded{doc, r}
}

// get returns the record with a document.
func (d *decoded) get(doc []byte) (run.Run, bool) {
	key := maphash.Bytes(d.seed, doc)
	d.mu.Lock()
	defer d.mu.Unlock()
	found, ok := d.young[key]
	if !ok {
		found, ok = d.aging[key]
	}
	return found.run, ok && bytes.Equal(found.doc, doc)
}
