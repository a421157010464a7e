package inferences

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// DispatchCall asks a dispatcher to serve the tasks of a pool; see Dispatcher.ServePool.
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

// Calls implements runs.TaskServer in a process without a dispatcher. It calls dispatchers
// of other processes when a commit or a sweep finds work for them.
type Calls struct {
	call CallDispatcher
	log  *slog.Logger
}

// NewCalls returns Calls by call.
func NewCalls(call CallDispatcher, log *slog.Logger) Calls { return Calls{call, log} }

// Committed implements port.Observer. It calls a dispatcher for a task that needs one, and for the
// cancel request of a running task: that dispatcher releases the slot of the pool, and the one that
// serves the task detects the change later.
func (c Calls) Committed(ctx context.Context, r run.Run, _ []run.Event) {
	if r.Work.Inference != nil && needsDispatcher(r, func() bool { return false }) {
		c.Resume(ctx, r)
	}
}

// Resume calls a dispatcher for an overdue task.
func (c Calls) Resume(ctx context.Context, r run.Run) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	if err := c.call(ctx, callFor(r)); err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "cannot call a dispatcher; a sweep does", append(about.Run(&r), slog.String("error", err.Error()))...)
	}
}

// TryTake returns nil: this process has no replicas.
func (Calls) TryTake(context.Context, run.Run) PreparedTask { return nil }

// Describe does nothing: this process asks no engines.
func (Calls) Describe(context.Context, platform.Pool) {}

// ContextOf returns 0, for an unknown context.
func (Calls) ContextOf(context.Context, platform.Pool) int { return 0 }

// GeneratesFor returns false: this process serves no tasks.
func (Calls) GeneratesFor(string, string) bool { return false }

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
