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
}

func newChanges() *changes {
	return &changes{waiting: map[run.Ref]map[chan struct{}]struct{}{}}
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
