package sqlite

import (
	"sync"

	"github.com/sortie-dev/sortie/shared/run"
)

// newestLimit is how many records one of the two halves holds.
const newestLimit = 512

// newest keeps the records that were written or read last, so that those which
// are being worked on are not read and decoded at each step. It is exact: the
// file is this process's alone, and every commit goes through it before it
// returns. A record that is in neither half is in the file.
//
// Whoever goes to the file takes a mark before. Where the record has left since
// then, what left may have been newer than what was found in the file, and that
// is not kept.
type newest struct {
	mu           sync.Mutex
	young, aging map[run.Ref]note
	// tasks finds the records whose task id is not their run id.
	tasks map[run.Ref]run.Ref
	// left counts what made records leave; allLeft is when all of them did.
	left, allLeft mark
}

// mark is a moment of a newest: how often records had left it.
type mark int64

// note is a record, or that it has left.
type note struct {
	run  run.Run
	gone bool
	// left is when it last did.
	left mark
}

func newNewest() *newest {
	return &newest{young: map[run.Ref]note{}, aging: map[run.Ref]note{}, tasks: map[run.Ref]run.Ref{}}
}

// now is the mark to take before the file is read or written.
func (n *newest) now() mark {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.left
}

// begin keeps a record that was created, in place of any that had its id before.
func (n *newest) begin(r run.Run, since mark) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, ok := n.look(r.Ref())
	switch {
	case since < n.allLeft || ok && since < old.left:
	case ok && !old.gone && old.run.CreatedAt.Equal(r.CreatedAt):
		// Somebody has found and committed it already.
	default:
		n.keep(r, old.left)
	}
}

// put keeps a record, unless a later version of it is kept: a reader may be
// overtaken by a commit. A version takes the place of an earlier one whatever has
// left meanwhile: what is kept would be older than the file for ever.
func (n *newest) put(r run.Run, since mark) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, ok := n.look(r.Ref())
	switch {
	case ok && !old.gone:
		if old.run.Version < r.Version && old.run.CreatedAt.Equal(r.CreatedAt) {
			n.keep(r, old.left)
		}
	case since < n.allLeft || ok && since < old.left:
	default:
		n.keep(r, old.left)
	}
}

// drop makes the next reader of the records ask the file, after a commit that
// failed: whoever decides again must not do so on what lost.
func (n *newest) drop(records []record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.left++
	for _, rec := range records {
		n.write(rec.Run.Ref(), note{gone: true, left: n.left})
	}
}

// forget drops everything, after rows were deleted.
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
	found, ok := n.look(ref)
	return found.run, ok && !found.gone
}

func (n *newest) find(tenant, taskID string) (run.Run, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ref := run.Ref{Tenant: tenant, ID: taskID}
	if other, ok := n.tasks[ref]; ok {
		ref = other
	}
	found, ok := n.look(ref)
	return found.run, ok && !found.gone && found.run.TaskID == taskID
}

func (n *newest) look(ref run.Ref) (note, bool) {
	if found, ok := n.young[ref]; ok {
		return found, true
	}
	found, ok := n.aging[ref]
	return found, ok
}

func (n *newest) keep(r run.Run, left mark) {
	n.write(r.Ref(), note{run: r, left: left})
	if r.TaskID != r.ID {
		n.tasks[run.Ref{Tenant: r.Tenant, ID: r.TaskID}] = r.Ref()
	}
}

// write makes room by letting the older half leave.
func (n *newest) write(ref run.Ref, as note) {
	if len(n.young) >= newestLimit {
		n.aging, n.young = n.young, make(map[run.Ref]note, newestLimit)
		clear(n.tasks)
		n.left++
		n.allLeft = n.left
	}
	n.young[ref] = as
}
