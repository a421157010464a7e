package orchestrator

import (
	"context"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// TaskService says who serves inference tasks after a commit of a process: a CallDispatcher,
// which calls another process, or LeaveToSweep. A Dispatcher serves those of its own commits.
type TaskService interface {
	server(life *Lifecycle) taskServer
}

// taskServer is the dispatcher of a process as its other use cases see it.
type taskServer interface {
	// Committed starts the work that a commit gives to a dispatcher.
	port.Observer
	// resume continues an overdue task.
	resume(ctx context.Context, r run.Run)
	// tryTake acquires a replica for a new task, or returns nil.
	tryTake(ctx context.Context, r run.Run) *preparedTask
	// describe asks the engines of a pool for their capabilities.
	describe(ctx context.Context, pool run.Pool)
	// contextOf returns the largest reported context of a pool's replicas; 0 if it is unknown.
	contextOf(ctx context.Context, pool run.Pool) int
	// generatesFor reports whether an engine has sent a part of an answer of a session.
	generatesFor(tenant, session string) bool
	// stopped reports whether the process stops.
	stopped() bool
}

// elsewhere is the taskServer of a process without a dispatcher.
type elsewhere struct{}

var _ taskServer = elsewhere{}

// Committed implements port.Observer.
func (elsewhere) Committed(context.Context, run.Run, []run.Event) {}

func (elsewhere) resume(context.Context, run.Run) {}

func (elsewhere) tryTake(context.Context, run.Run) *preparedTask { return nil }

func (elsewhere) describe(context.Context, run.Pool) {}

func (elsewhere) contextOf(context.Context, run.Pool) int { return 0 }

func (elsewhere) generatesFor(string, string) bool { return false }

func (elsewhere) stopped() bool { return false }
