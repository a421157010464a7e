package run

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// metAfter returns the number of constraints that are evaluated later and are not violated.
func (r Run) metAfter() (n int) {
	c := r.Constraints
	if c == nil {
		return 0
	}
	if c.MaxExpectedRunTime > 0 && !r.violates(spec.MaxExpectedRunTime) {
		n++
	}
	if c.PostRunHook != nil && !r.violates(spec.PostRunHook) {
		n++
	}
	return n
}

// windowEnd returns the latest start that the catchUpWindow allows; zero without a window or a
// scheduled time, and for a backfill.
func (r Run) windowEnd() time.Time {
	if c := r.Constraints; c != nil && c.CatchUpWindow > 0 && !r.ScheduledAt.IsZero() && !r.Backfills() {
		return r.ScheduledAt.Add(c.CatchUpWindow)
	}
	return time.Time{}
}

// Lateness returns the violation of catchUpWindow by the run at the time now. ok is false if
// the run is not too late.
func (r Run) Lateness(now time.Time) (v spec.ConstraintViolation, ok bool) {
	end := r.windowEnd()
	if end.IsZero() || !now.After(end) {
		return v, false
	}
	late := now.Sub(r.ScheduledAt).Round(time.Second)
	return spec.ConstraintViolation{
		Constraint: spec.CatchUpWindow, At: now, Message: fmt.Sprintf("the run is %s late, want at most %s", late, r.Constraints.CatchUpWindow),
	}, true
}
