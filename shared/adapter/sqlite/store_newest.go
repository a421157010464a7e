package sqlite

import (
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// newestLimit is the capacity of each of the two halves.
const newestLimit = 512

// decodedSize limits the total size of the cached documents of decoded runs, in bytes.
const decodedSize = 4 << 20

// newest caches the records that were written or read last, so that active runs are not read
// and decoded at each step. It is exact, because only this process writes the file. Every
// commit evicts its records before it begins, and caches them before it returns. Otherwise a
// reader could see one row of the commit in the file, and another record in the cache as it was
// before. A record in neither half is in the file.
//
// A reader of the file takes a mark first. If the record was evicted after the mark, the
// evicted version may have been newer than the one that the reader found. The reader's version
// is then not cached.
type newest struct {
	mu           sync.Mutex
	young, aging map[run.Ref]note
	// tasks finds the records whose task id differs from the run id.
	tasks map[run.Ref]run.Ref
	// committing counts the commits of a record that have begun and not ended. Meanwhile the
	// record is not cached.
	committing map[run.Ref]int
	// left counts evictions. allLeft is the count at the last eviction of all records.
	left, allLeft mark
}

// mark is a count of evictions.
type mark int64

// note is a record, or its eviction.
type note struct {
	run *run.Run // never changed; nil for an eviction
	// left is the count at the last eviction of the record.
	left mark
}

func newNewest() *newest {
	return &newest{young: map[run.Ref]note{}, aging: map[run.Ref]note{}, tasks: map[run.Ref]run.Ref{}, committing: map[run.Ref]int{}}
}

// now returns the mark. A caller takes it before it reads the file or creates a run.
func (n *newest) now() mark {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.left
}

// addCreated caches a created record in place of an earlier one with the same id.
func (n *newest) addCreated(r *run.Run, since mark) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, ok := n.lookup(r.Ref())
	switch {
	case n.committing[r.Ref()] > 0, since < n.allLeft || ok && since < old.left:
	case ok && old.run != nil && old.run.CreatedAt.Equal(r.CreatedAt):
		// Another caller has found and committed it already.
	default:
		n.store(r, old.left)
	}
}

// put caches a record unless a later version is cached, because a commit may
// overtake a reader. It replaces an earlier version in any case: that one would
// stay older than the file.
func (n *newest) put(r *run.Run, since mark) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note(r, since)
}

// note is like put. n.mu is locked.
func (n *newest) note(r *run.Run, since mark) {
	old, ok := n.lookup(r.Ref())
	switch {
	case n.committing[r.Ref()] > 0: // the end of the commit caches the record
	case ok && old.run != nil:
		if old.run.Version < r.Version && old.run.CreatedAt.Equal(r.CreatedAt) {
			n.store(r, old.left)
		}
	case since < n.allLeft || ok && since < old.left:
	default:
		n.store(r, old.left)
	}
}

// commit evicts the records of a commit that begins, and returns the function that ends the
// commit. end(true) caches the records. After end(false) the next decision reads the file.
func (n *newest) commit(records []record) (end func(done bool)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, rec := range records {
		n.committing[rec.Run.Ref()]++
	}
	since := n.evict(records)
	return func(done bool) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, rec := range records {
			ref := rec.Run.Ref()
			if n.committing[ref]--; n.committing[ref] == 0 {
				delete(n.committing, ref)
			}
			if done {
				n.note(rec.Run, since)
			}
		}
		if !done {
			n.evict(records)
		}
	}
}

// evict evicts records, and returns the mark after the eviction. n.mu is locked.
func (n *newest) evict(records []record) mark {
	n.left++
	for _, rec := range records {
		n.write(rec.Run.Ref(), note{left: n.left})
	}
	return n.left
}

// forget evicts all records, after rows were deleted.
func (n *newest) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.young)
	clear(n.aging)
	clear(n.tasks)
	n.left++
	n.allLeft = n.left
}

func (n *newest) get(ref run.Ref) (run.Run, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found, _ := n.lookup(ref)
	if found.run == nil {
		return run.Run{}, false
	}
	return *found.run, true
}

// find returns the record with the run id or task id.
func (n *newest) find(tenant, id string) (run.Run, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ref := run.Ref{Tenant: tenant, ID: id}
	if other, ok := n.tasks[ref]; ok {
		ref = other
	}
	found, _ := n.lookup(ref)
	if found.run == nil || found.run.ID != id && found.run.TaskID != id {
		return run.Run{}, false
	}
	return *found.run, true
}

func (n *newest) lookup(ref run.Ref) (note, bool) {
	if found, ok := n.young[ref]; ok {
		return found, true
	}
	found, ok := n.aging[ref]
	return found, ok
}

func (n *newest) store(r *run.Run, left mark) {
	n.write(r.Ref(), note{run: r, left: left})
	if r.TaskID != r.ID {
		n.tasks[run.Ref{Tenant: r.Tenant, ID: r.TaskID}] = r.Ref()
	}
}

// write stores a note. If the young half is full, it becomes the older half and the notes of
// that are evicted.
func (n *newest) write(ref run.Ref, as note) {
	if len(n.young) >= newestLimit {
		n.aging, n.young = n.young, make(map[run.Ref]note, newestLimit)
		clear(n.tasks)
		n.left++
		n.allLeft = n.left
	}
	n.young[ref] = as
}
