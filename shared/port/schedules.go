package port

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// Schedules is a timer with one wake-up per job. The receiver of a wake-up reads the job and
// commits the due firings, so a wake-up may be late, repeated, replaced or removed. The sweep
// replaces a lost wake-up; see JobStore.JobsDue. Schedules is safe for concurrent use. Its faults
// are Unavailable; the call may then have been applied.
type Schedules interface {
	// Set replaces the wake-up of a job. It is delivered at the time at or later; at once if
	// that time has passed.
	Set(ctx context.Context, ref job.Ref, at time.Time) error
	// Remove removes the wake-up of a job. A job without one is no error.
	Remove(ctx context.Context, ref job.Ref) error
	// Precision returns how late a wake-up may be without a failure; 0 means that each is
	// delivered at its time.
	Precision() time.Duration
}
