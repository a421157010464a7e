package orchestrator

import (
	"sync"

	"github.com/sortie-dev/sortie/shared/run"
)

// changes wakes readers of this process when a run is committed here. Other
// processes commit too, so a reader also polls.
type changes struct {
	mu      sync.Mutex
	waiting map[run.Ref]map[chan struct{}]struct{}
	// moves are the watches of moves, by the tenant and the id that the reader knows.
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

// standing is what a reader of the status waits for.
type standing struct {
	state   run.State
	attempt int
	queued  bool
}

func standingOf(r run.Run) standing {
	return standing{r.State, r.Attempt.Number, r.Queued() || r.AwaitsKey() || r.AwaitsJobSlot()}
}

// moveWatch is a watch of a run that moves to another state, attempt or place in a queue.
type moveWatch struct {
	all *changes
	id  run.Ref
	// moved gets a value when the run may have moved since the reader has seen it.
	moved chan struct{}
	// seen is where the reader has seen the run; nil before. newest is the run of the last
	// commit that has made the reader look again.
	seen   *standing
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

// saw notes where the reader has seen the run.
func (w *moveWatch) saw(r run.Run) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	at := standingOf(r)
	w.seen = &at
}

// committed returns the run of the last commit of this process for which the reader looks again;
// nil for no such commit.
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

// committed wakes the readers of a run after its commit. A run in a queue may have another
// position in it.
func (c *changes) committed(r run.Run) {
	c.notify(r.Ref())
	at := standingOf(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range []run.Ref{r.Ref(), {Tenant: r.Tenant, ID: r.TaskID}} {
		for w := range c.moves[id] {
			if w.seen == nil || *w.seen != at || at.queued {
				if newest := r; w.newest == nil || w.newest.Version < r.Version {
					w.newest = &newest
				}
				select {
				case w.moved <- struct{}{}:
				default:
				}
			}
		}
	}
}
