// Package watch wakes the readers of runs in this process.
package watch

import (
	"slices"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Changes wakes readers of this process when a run is committed here. Other
// processes commit too, so a reader also polls.
type Changes struct {
	mu      sync.Mutex
	waiting map[run.Ref]map[chan struct{}]struct{}
	// moves has the watches of Moves, by tenant and run id or task id.
	moves map[run.Ref]map[*Moves]struct{}
}

// New returns changes without readers.
func New() *Changes {
	return &Changes{waiting: map[run.Ref]map[chan struct{}]struct{}{}, moves: map[run.Ref]map[*Moves]struct{}{}}
}

// Watch returns a channel that is closed at the run's next commit, and a function
// that ends the watch.
func (c *Changes) Watch(ref run.Ref) (<-chan struct{}, func()) {
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

// Notify wakes the readers of a run.
func (c *Changes) Notify(ref run.Ref) {
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

// Moves watches a run for another state, another attempt, or another position in a queue.
type Moves struct {
	all *Changes
	id  run.Ref
	// Moved receives a value when the run may have changed since the reader last read it.
	Moved chan struct{}
	// seen is the status that the reader read last; nil before its first read. newest is the
	// newest run whose commit was sent to Moved.
	seen   *queueStatus
	newest *run.Run
}

// Moves watches the run with a run id or task id. It begins before the first read of
// the run, so that the reader need not read it again.
func (c *Changes) Moves(tenant, id string) *Moves {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &Moves{all: c, id: run.Ref{Tenant: tenant, ID: id}, Moved: make(chan struct{}, 1)}
	if c.moves[w.id] == nil {
		c.moves[w.id] = map[*Moves]struct{}{}
	}
	c.moves[w.id][w] = struct{}{}
	return w
}

// Saw stores the status of the run that the reader has read.
func (w *Moves) Saw(r *run.Run) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	at := queueStatusOf(r)
	w.seen = &at
}

// Committed returns the newest run whose commit in this process was sent to Moved; nil without
// one.
func (w *Moves) Committed() *run.Run {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	return w.newest
}

// End ends the watch.
func (w *Moves) End() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	delete(w.all.moves[w.id], w)
	if len(w.all.moves[w.id]) == 0 {
		delete(w.all.moves, w.id)
	}
}

// Committed notifies the readers of a run after its commit. Readers of a queued run are always
// notified, because its position may have changed.
func (c *Changes) Committed(r *run.Run) {
	c.Notify(r.Ref())
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
			case w.Moved <- struct{}{}:
			default:
			}
		}
	}
}
