package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// DispatchCall asks a dispatcher to serve the tasks of a pool; see Dispatcher.Shift.
type DispatchCall struct {
	Tenant string `json:"tenant"`
	Pool   string `json:"pool"`
	// Run is the id of the run that needs a dispatcher; empty for all tasks of the pool.
	Run string `json:"run,omitempty"`
}

// CallDispatcher calls a dispatcher, which works after the call has returned. Calls may be
// lost and repeated: a sweep finds tasks that no dispatcher serves.
type CallDispatcher func(ctx context.Context, call DispatchCall) error

// callTime is the time limit of a call of a dispatcher. The commit before it waits for the
// call.
const callTime = 5 * time.Second

// server implements TaskService: a process without a dispatcher calls one when a commit or a
// sweep of the process finds work for it.
func (c CallDispatcher) server(life *Lifecycle) taskServer {
	return dispatchCalls{elsewhere{}, life, c}
}

type dispatchCalls struct {
	elsewhere
	life   *Lifecycle
	dialed CallDispatcher
}

// Committed implements port.Observer. It calls a dispatcher also for the cancel request of a
// running task. That dispatcher releases the slot of the pool, and the one that serves the task
// finds the change later.
func (c dispatchCalls) Committed(ctx context.Context, r run.Run, _ []run.Event) {
	if r.Work.Inference != nil && needsDispatcher(r, func() bool { return false }) {
		c.resume(ctx, r)
	}
}

func (c dispatchCalls) resume(ctx context.Context, r run.Run) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	if err := c.dialed(ctx, callFor(r)); err != nil {
		c.life.warn(ctx, r, "cannot call a dispatcher; a sweep does", err)
	}
}

func callFor(r run.Run) DispatchCall {
	return DispatchCall{Tenant: r.Tenant, Pool: r.Slot.Pool, Run: r.ID}
}

// Check returns an error for a call that names no pool.
func (c DispatchCall) Check() error {
	if c.Tenant == "" || c.Pool == "" {
		return errors.New("malformed call, want a tenant and a pool")
	}
	return nil
}
