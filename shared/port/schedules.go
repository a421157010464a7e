package port

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/job"
)

// Schedules wakes jobs: it is a timer with one wake-up per job, not a calendar. A
// wake-up makes the receiver read the job and commit what is due, so it may come late,
// twice, or after it was replaced or removed. One that is lost is found by the sweep,
// through JobStore.JobsDue. Schedules is safe for concurrent use. Its faults are
// Unavailable; the call may then have been applied.
type Schedules interface {
	// Set replaces the wake-up of a job. It is delivered at a time, not before, and at
	// once if that has passed.
	Set(ctx context.Context, ref job.Ref, at time.Time) error
	// Remove removes the wake-up of a job; a job without one is no error.
	Remove(ctx context.Context, ref job.Ref) error
	// Precision is how late a wake-up may be although nothing has failed; 0 means that each
	// is delivered at its time.
	Precision() time.Duration
}
