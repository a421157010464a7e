package fake

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// Wakes is a queue in memory, which the test empties with Due. It is safe for concurrent use.
type Wakes struct {
	calls
	clock clock.Clock

	mu     sync.Mutex
	queued []queuedWake
}

type queuedWake struct {
	port.Wake
	at time.Time
}

var _ port.Wakes = (*Wakes)(nil)

// NewWakes returns an empty queue.
func NewWakes(clk clock.Clock, plan Plan) *Wakes { return &Wakes{calls: calls{plan: plan}, clock: clk} }

// Wake implements port.Wakes.
func (w *Wakes) Wake(ctx context.Context, wakes ...port.Wake) error {
	return w.call(ctx, "Wake", "", true, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, each := range wakes {
			w.queued = append(w.queued, queuedWake{each, w.clock.Now().Add(each.Delay)})
		}
		return nil
	})
}

// Due removes the due wakes from the queue and returns them, each webhook once.
func (w *Wakes) Due() (due []port.Wake) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	w.queued = slices.DeleteFunc(w.queued, func(q queuedWake) bool {
		if q.at.After(now) {
			return false
		}
		q.Delay = 0
		if !slices.Contains(due, q.Wake) {
			due = append(due, q.Wake)
		}
		return true
	})
	return due
}

// Next returns the time of the next wake, or the zero time without one.
func (w *Wakes) Next() (next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.queued {
		if next.IsZero() || q.at.Before(next) {
			next = q.at
		}
	}
	return next
}
