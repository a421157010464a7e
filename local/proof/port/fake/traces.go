package fake

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Traces implements port.Traces for a single goroutine. It appends the IDs of the runs to Sent.
type Traces struct {
	// Waiting has the runs of observed commits that were not sent yet.
	Waiting, Sent []string
	// Lost is what Dropped returns.
	Lost int
	// Limit is the time that the last Flush had until its deadline; 0 without a deadline.
	Limit time.Duration
}

var _ port.Traces = (*Traces)(nil)

// Committed implements port.Observer.
func (f *Traces) Committed(_ context.Context, r run.Run, _ []run.Event) {
	f.Waiting = append(f.Waiting, r.ID)
}

// Flush implements port.Traces.
func (f *Traces) Flush(ctx context.Context) {
	f.Sent, f.Waiting = append(f.Sent, f.Waiting...), nil
	if deadline, ok := ctx.Deadline(); ok {
		f.Limit = time.Until(deadline)
	}
}

// Dropped implements port.Traces.
func (f *Traces) Dropped() int { return f.Lost }
