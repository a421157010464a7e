package runs

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TaskServer serves inference tasks after the commits of a process: a dispatcher of the process,
// calls of the dispatchers of other processes, or LeaveToSweep; see package inferences.
type TaskServer interface {
	// Committed starts the work that a commit gives to a dispatcher.
	port.Observer
	// Resume continues an overdue task.
	Resume(ctx context.Context, r run.Run)
	// TryTake acquires a replica for a new task, or returns nil.
	TryTake(ctx context.Context, r run.Run) PreparedTask
	// Describe asks the engines of a pool for their capabilities.
	Describe(ctx context.Context, pool platform.Pool)
	// ContextOf returns the largest reported context of a pool's replicas; 0 if it is unknown.
	ContextOf(ctx context.Context, pool platform.Pool) int
	// GeneratesFor reports whether an engine has sent a part of an answer of a session.
	GeneratesFor(tenant, session string) bool
}

// PreparedTask is a new task whose dispatcher has acquired a slot of a replica before the task is
// stored. It is an alias, so that a TaskServer needs no import of this package.
type PreparedTask = interface {
	// Creation returns the decision that creates the task with its slot and its worker.
	Creation(ctx context.Context, r run.Run, now time.Time) (run.Decision, error)
	// Start serves the task. r is the stored run.
	Start(r run.Run)
	// GiveUp releases the replica of a task that is not stored in this way.
	GiveUp()
}

var _ TaskServer = LeaveToSweep{}

// Committed implements port.Observer. It leaves the task to a sweep.
func (LeaveToSweep) Committed(context.Context, run.Run, []run.Event) {}

// Resume implements TaskServer.
func (LeaveToSweep) Resume(context.Context, run.Run) {}

// TryTake implements TaskServer.
func (LeaveToSweep) TryTake(context.Context, run.Run) PreparedTask { return nil }

// Describe implements TaskServer.
func (LeaveToSweep) Describe(context.Context, platform.Pool) {}

// ContextOf implements TaskServer.
func (LeaveToSweep) ContextOf(context.Context, platform.Pool) int { return 0 }

// GeneratesFor implements TaskServer.
func (LeaveToSweep) GeneratesFor(string, string) bool { return false }
