package orchestrator

import (
	"sync"

	"github.com/sortie-dev/sortie/shared/run"
)

// changes tells waiting readers of this process that a run was committed here.
// It is a shortcut: other processes commit too, so readers also look again by
// themselves.
type changes struct {
	mu      sync.Mutex
	waiting map[run.Ref]map[chan struct{}]struct{}
}

func newChanges() *changes {
	return &changes{waiting: map[run.Ref]map[chan struct{}]struct{}{}}
}

// watch gives a channel that is closed at the run's next commit, and a function
// that gives the watch up.
func (c *changes) watch(ref run.Ref) (<-chan struct{}, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := make(chan struct{})
	if c.waiting[ref] == nil {
		c.waiting[ref] = map[chan struct{}]struct{}{}
	}
	c.waiting[ref][told] = struct{}{}
	return told, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting[ref], told)
		if len(c.waiting[ref]) == 0 {
			delete(c.waiting, ref)
		}
	}
}

func (c *changes) notify(ref run.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for told := range c.waiting[ref] {
		close(told)
	}
	delete(c.waiting, ref)
}
