// Package inferences has the use cases of inference tasks: Inference serves their clients, a
// Dispatcher is their worker.
//
// A task is a run of kind inference in a pool of an engine. What happens to it, in order of time:
// Inference.Create accepts it; Dispatcher.TryTake or Dispatcher.Advance acquires a replica of the
// pool; Dispatcher.serve streams the answer of the engine; Dispatcher.settle ends the run. A stream
// decides the outcome of its task; see package answer.
//
// What the room needs of runs it declares as Runs.
package inferences

import (
	"context"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Store stores pools, and the runs of tasks with their slots, heartbeats and budgets.
type Store interface {
	port.RunStore
	port.HeartbeatStore
	port.LeaseStore
	port.PoolStore
	port.AccountStore
}

// Runs are the runs of inference tasks. All methods are safe for concurrent use.
type Runs interface {
	// Parts returns the clock, the log and the caches of the process.
	Parts() (clock.Clock, *slog.Logger, *capacity.Caches)
	// Find returns a task of the caller's tenant. Fault: NotFound.
	Find(ctx context.Context, who port.Identity, taskID string) (run.Run, error)
	// Watch returns a channel that is closed at the run's next commit by this process, and a
	// function that ends the watch.
	Watch(ref run.Ref) (changed <-chan struct{}, end func())
	// Apply commits a fact about a run that was just read, and acts on it. It returns the newest
	// record.
	Apply(ctx context.Context, r run.Run, f run.Fact) (run.Run, error)
	// Create assigns the ids of a new run and stores it. existing reports that the idempotency key
	// was used; created is then the run of its first use.
	Create(ctx context.Context, r run.Run, key, digest string) (created run.Run, existing bool, err error)
	// Refuse returns refusal, or the run of the first use of the key.
	Refuse(ctx context.Context, tenant string, key *port.IdempotencyKey, refusal error) (known run.Run, existing bool, err error)
	// TakeSlot takes the run's free slots or enqueues it. It returns the newest record.
	TakeSlot(ctx context.Context, r run.Run) (run.Run, error)
	// Cancel requests the end of a task. It is idempotent. Fault: NotFound.
	Cancel(ctx context.Context, who port.Identity, taskID, reason string) (run.Run, error)
	// ContextOf returns the largest context that the replicas of a pool have reported, in tokens;
	// 0 if it is unknown.
	ContextOf(ctx context.Context, pool platform.Pool) int
}

// PreparedTask is a new task whose dispatcher has acquired a slot of a replica before the task is
// stored. It is an alias, so that Dispatcher implements the interface of its caller.
type PreparedTask = interface {
	// Creation returns the decision that creates the task with its slot and its worker.
	Creation(ctx context.Context, r run.Run, now time.Time) (run.Decision, error)
	// Start serves the task. r is the stored run.
	Start(r run.Run)
	// GiveUp releases the replica of a task that is not stored in this way.
	GiveUp()
}

// Config configures the inference tasks of a deployment.
type Config struct {
	// Policy is the default policy of runs.
	Policy spec.Policy
	// Budgets are the limits of tenants, projects and sessions without their own; nil is
	// budget.Standard.
	Budgets *budget.Defaults
	// Answers is how long the answers of tenants are stored.
	Answers inference.Retention
	// MostWithin is the longest deadline of a request whose caller waits; 0 is
	// inference.MostWaited.
	MostWithin time.Duration
}
