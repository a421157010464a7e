package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// DispatchCall asks a dispatcher for a shift in a pool.
type DispatchCall struct {
	Tenant string `json:"tenant"`
	Pool   string `json:"pool"`
	// Run is the id of a task that needs something; empty for whatever the pool has.
	Run string `json:"run,omitempty"`
}

// CallDispatcher calls a dispatcher, which works after the call has returned. Calls may be
// lost and repeated: a sweep finds tasks that no dispatcher serves.
type CallDispatcher func(ctx context.Context, call DispatchCall) error

// callTime is how long a call of a dispatcher may take; the commit before it waits for it.
const callTime = 5 * time.Second

// CallDispatchers makes a process without a dispatcher call one when its commits or its
// sweeps find something to do for one. life is not used before.
func CallDispatchers(life *Lifecycle, call CallDispatcher) {
	c := dispatchCalls{life, call}
	life.observers = append(life.observers, c)
	life.resume = c.call
}

type dispatchCalls struct {
	life   *Lifecycle
	dialed CallDispatcher
}

var _ port.Observer = dispatchCalls{}

// Committed implements port.Observer. The cancel request of a running task calls a dispatcher
// that frees the slot of its pool; the one that serves the task finds that at its next look.
func (c dispatchCalls) Committed(ctx context.Context, r run.Run, _ []run.Event) {
	if r.Work.Inference != nil && needsDispatcher(r, func() bool { return false }) {
		c.call(ctx, r)
	}
}

func (c dispatchCalls) call(ctx context.Context, r run.Run) {
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
