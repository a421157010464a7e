package runs

import (
	"context"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Tasks lets other packages find the tasks of Records and wait for their changes. It is safe for
// concurrent use.
type Tasks struct{ records *Records }

// NewTasks returns the tasks of records.
func NewTasks(records *Records) Tasks { return Tasks{records} }

// Find returns a task of the caller's tenant. Fault: NotFound.
func (t Tasks) Find(ctx context.Context, who port.Identity, taskID string) (run.Run, error) {
	return t.records.find(ctx, who, taskID)
}

// Reads returns the store of the tasks and the clock of the process.
func (t Tasks) Reads() (port.Store, clock.Clock) { return t.records.store, t.records.clock }

// Watch returns a channel that is closed at the run's next commit by these Records, or at the
// next Notify, and a function that ends the watch.
func (t Tasks) Watch(ref run.Ref) (changed <-chan struct{}, end func()) {
	return t.records.changes.Watch(ref)
}

// Notify closes the channels of the watches of a run.
func (t Tasks) Notify(ref run.Ref) { t.records.changes.Notify(ref) }

// Warn logs an error with the ids of a run.
func (t Tasks) Warn(ctx context.Context, r run.Run, message string, err error) {
	t.records.warn(ctx, r, message, err)
}
