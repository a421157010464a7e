package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// watch ends a request when a limit has passed.
type watch struct {
	clock  clock.Clock
	limits port.GenerationLimits
	start  time.Time
	// last is the time of the newest piece in nanoseconds; 0 before the first.
	last   atomic.Int64
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	stopped bool
	release func() // of the timer; nil without one
}

// watchLimits returns a context that ends with ctx, or at a limit with a DecodeTimeout as its
// cause.
func watchLimits(ctx context.Context, c clock.Clock, limits port.GenerationLimits) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{clock: c, limits: limits, start: c.Now(), cancel: cancel}
	if limits != (port.GenerationLimits{}) {
		w.check()
	}
	return ctx, w
}

// piece records that a piece was received.
func (w *watch) piece() { w.last.Store(w.clock.Now().UnixNano()) }

// stop ends the watch.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.release != nil {
		w.release()
	}
	w.cancel(nil)
}

// check ends the request if a limit has passed. Otherwise it schedules itself for the earliest
// time at which a limit can pass.
func (w *watch) check() {
	due, why := w.due()
	left := due.Sub(w.clock.Now())
	if why != "" && left <= 0 {
		w.cancel(fault.New(fault.DecodeTimeout, "the engine %s", why))
	} else if gap := w.limits.Gap; gap > 0 && (why == "" || left > gap) {
		left = gap // the first piece may come before, and starts this limit
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if left > 0 && !w.stopped {
		w.release = clock.AfterFunc(w.clock, left, w.check)
	}
}

// due returns the time of the earliest limit, and the message for it.
func (w *watch) due() (at time.Time, why string) {
	if l := w.limits.Total; l > 0 {
		at, why = w.start.Add(l), "did not finish within "+l.String()
	}
	from, l, said := w.start, w.limits.First, "sent nothing within "
	if last := w.last.Load(); last != 0 {
		from, l, said = time.Unix(0, last), w.limits.Gap, "sent nothing for "
	}
	if next := from.Add(l); l > 0 && (why == "" || next.Before(at)) {
		at, why = next, said+l.String()
	}
	return at, why
}
