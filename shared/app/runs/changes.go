package runs

import (
	"slices"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// changes wakes readers of this process when a run is committed here. Other
// processes commit too, so a reader also polls.
type changes struct {
	mu      sync.Mutex
	waiting map[run.Ref]map[chan struct{}]struct{}
	// moves has the watches of watchMoves, by tenant and run id or task id.
	moves map[run.Ref]map[*moveWatch]struct{}
}

func newChanges() *changes {
	return &changes{waiting: map[run.Ref]map[chan struct{}]struct{}{}, moves: map[run.Ref]map[*moveWatch]struct{}{}}
}

// watch returns a channel that is closed at the run's next commit, and a function
// that ends the watch.
func (c *changes) watch(ref run.Ref) (<-chan struct{}, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := make(chan struct{})
	if c.waiting[ref] == nil {
		c.waiting[ref] = map[chan struct{}]struct{}{}
	}
	c.waiting[ref][changed] = struct{}{}
	return changed, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting[ref], changed)
		if len(c.waiting[ref]) == 0 {
			delete(c.waiting, ref)
		}
	}
}

func (c *changes) notify(ref run.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for changed := range c.waiting[ref] {
		close(changed)
	}
	delete(c.waiting, ref)
}

// queueStatus is the part of a run whose change a reader of its status waits for.
type queueStatus struct {
	state   run.State
	attempt int
	queued  bool
}

func queueStatusOf(r *run.Run) queueStatus {
	return queueStatus{r.State, r.Attempt.Number, r.Queued() || r.AwaitsKey() || r.AwaitsJobSlot()}
}

// moveWatch watches a run for another state, another attempt, or another position in a queue.
type moveWatch struct {
	all *changes
	id  run.Ref
	// moved receives a value when the run may have changed since the reader last read it.
	moved chan struct{}
	// seen is the status that the reader read last; nil before its first read. newest is the
	// newest run whose commit was sent to moved.
	seen   *queueStatus
	newest *run.Run
}

// watchMoves watches the run with a run id or task id. It begins before the first read of
// the run, so that the reader need not read it again.
func (c *changes) watchMoves(tenant, id string) *moveWatch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &moveWatch{all: c, id: run.Ref{Tenant: tenant, ID: id}, moved: make(chan struct{}, 1)}
	if c.moves[w.id] == nil {
		c.moves[w.id] = map[*moveWatch]struct{}{}
	}
	c.moves[w.id][w] = struct{}{}
	return w
}

// saw stores the status of the run that the reader has read.
func (w *moveWatch) saw(r *run.Run) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	at := queueStatusOf(r)
	w.seen = &at
}

// committed returns the newest run whose commit in this process was sent to moved; nil without
// one.
func (w *moveWatch) committed() *run.Run {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	return w.newest
}

func (w *moveWatch) end() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	delete(w.all.moves[w.id], w)
	if len(w.all.moves[w.id]) == 0 {
		delete(w.all.moves, w.id)
	}
}

// committed notifies the readers of a run after its commit. Readers of a queued run are always
// notified, because its position may have changed.
func (c *changes) committed(r *run.Run) {
	c.notify(r.Ref())
	at := queueStatusOf(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	var newest *run.Run // a copy, because the caller may change r
	ids := [2]run.Ref{r.Ref(), {Tenant: r.Tenant, ID: r.TaskID}}
	for _, id := range slices.Compact(ids[:]) {
		for w := range c.moves[id] {
			if w.seen != nil && *w.seen == at && !at.queued {
				continue
			}
			if w.newest == nil || w.newest.Version < r.Version {
				if newest == nil {
					newest = new(*r)
				}
				w.newest = newest
			}
			select {
			case w.moved <- struct{}{}:
			default:
			}
		}
	}
}
