package run

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// EndBy returns the deadline of the run, over all its attempts: Policy.Deadline after its
// creation, or after its scheduled time if that is later. It is zero without a deadline.
func (r Run) EndBy() time.Time {
	if r.Policy.Deadline == 0 {
		return time.Time{}
	}
	return later(r.CreatedAt, r.ScheduledAt).Add(r.Policy.Deadline)
}

// pastDeadline reports whether the deadline of the run has passed at the time now.
func (r Run) pastDeadline(now time.Time) bool {
	by := r.EndBy()
	return !by.IsZero() && !now.Before(by)
}

// untilDeadline returns t, or the deadline of the run if that is earlier.
func (r Run) untilDeadline(t time.Time) time.Time {
	if by := r.EndBy(); !by.IsZero() && by.Before(t) {
		return by
	}
	return t
}

// deadlineFault is the reason of the end of a run at its deadline. during says what the run did.
func (r Run) deadlineFault(during string) *fault.Fault {
	return fault.New(fault.DeadlineExceeded, "the run reached its deadline of %s %s", r.Policy.Deadline, during)
}

// endAtDeadline ends a run that has no machine, if its deadline has passed. It reports whether it
// did.
func (d *draft) endAtDeadline(during string) bool {
	if !d.pastDeadline(d.now) {
		return false
	}
	why := d.deadlineFault(during)
	d.finish(Failed, why.Message, why)
	return true
}

// retryAfterDeadline returns the fault of a failed attempt with the reason that it is not
// retried. ok is false if the next attempt can begin before the deadline.
func (r Run) retryAfterDeadline(at time.Time, why *fault.Fault) (*fault.Fault, bool) {
	if !r.pastDeadline(at) {
		return nil, false
	}
	last := *why
	last.Retryable = false
	last.Message = fmt.Sprintf("%s; not retried, because the next attempt would start after the deadline of the run at %s",
		why.Message, r.EndBy().UTC().Format(time.RFC3339))
	return &last, true
}
