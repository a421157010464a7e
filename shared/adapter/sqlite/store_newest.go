package sqlite

import (
	"sync"

	"github.com/sortie-dev/sortie/shared/run"
)

// newestLimit is how many records one of the two halves holds.
const newestLimit = 4096

// newest keeps the records that were written or read last, so that those which
// are being worked on are not read and decoded at each step. It is exact: the
// file is this process's alone, and every commit goes through it before it
// returns. A record that is in neither half is in the file.
type newest struct {
	mu           sync.Mutex
	young, aging map[run.Ref]run.Run
	// tasks finds the records whose task id is not their run id.
	tasks map[run.Ref]run.Ref
}

func newNewest() *newest {
	return &newest{young: map[run.Ref]run.Run{}, aging: map[run.Ref]run.Run{}, tasks: map[run.Ref]run.Ref{}}
}

// begin keeps a record that was created, in place of any that had its id.
func (n *newest) begin(r run.Run) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.aging, r.Ref())
	delete(n.young, r.Ref())
	n.keep(r)
}

// put keeps a record, unless a later version of it is kept: a reader may be
// overtaken by a commit.
func (n *newest) put(r run.Run) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if kept, ok := n.look(r.Ref()); !ok || kept.Version < r.Version {
		n.keep(r)
	}
}

// drop makes the next reader of the records ask the file, after a commit that
// failed: whoever decides again must not do so on what lost.
func (n *newest) drop(records []record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, rec := range records {
		delete(n.young, rec.Run.Ref())
		delete(n.aging, rec.Run.Ref())
	}
}

// forget drops everything, after rows were deleted.
func (n *newest) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.young)
	clear(n.aging)
	clear(n.tasks)
}

func (n *newest) get(ref run.Ref) (run.Run, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.look(ref)
}

func (n *newest) find(tenant, taskID string) (run.Run, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ref := run.Ref{Tenant: tenant, ID: taskID}
	if other, ok := n.tasks[ref]; ok {
		ref = other
	}
	r, ok := n.look(ref)
	return r, ok && r.TaskID == taskID
}

func (n *newest) look(ref run.Ref) (run.Run, bool) {
	if r, ok := n.young[ref]; ok {
		return r, true
	}
	r, ok := n.aging[ref]
	return r, ok
}

func (n *newest) keep(r run.Run) {
	if len(n.young) >= newestLimit {
		n.aging, n.young = n.young, make(map[run.Ref]run.Run, newestLimit)
		clear(n.tasks)
	}
	n.young[r.Ref()] = r
	if r.TaskID != r.ID {
		n.tasks[run.Ref{Tenant: r.Tenant, ID: r.TaskID}] = r.Ref()
	}
}
