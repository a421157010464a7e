package port

import (
	"context"
	"maps"
	"sync"
)

// Calls counts the calls to runner platforms that are made for one run, by runner. The zero
// value is ready for use. It is safe for concurrent use.
type Calls struct {
	mu sync.Mutex
	by map[string]int
}

type callsKey struct{}

// WithCalls returns a context in which calls to platforms are counted in c.
func WithCalls(ctx context.Context, c *Calls) context.Context {
	return context.WithValue(ctx, callsKey{}, c)
}

// CountCall counts a call that a runner sends to its platform. Calls for several runs, such as
// lists and watches, have a context without Calls and are not counted.
func CountCall(ctx context.Context, runner string) {
	if c, ok := ctx.Value(callsKey{}).(*Calls); ok {
		c.Add(map[string]int{runner: 1})
	}
}

// Add adds calls by runner.
func (c *Calls) Add(by map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	for runner, n := range by {
		c.by[runner] += n
	}
}

// Take returns the calls since the last Take; nil without calls.
func (c *Calls) Take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := maps.Clone(c.by)
	c.by = nil
	return taken
}
