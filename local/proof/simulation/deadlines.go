package simulation

import (
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// drawDeadline gives the runs of every seventh world a deadline over all their attempts. It draws
// no random number, so that the other worlds stay as they are.
func (w *world) drawDeadline() {
	if w.Seed%7 == 3 && !w.Serves() && !w.Contended() && !w.Admitting() {
		w.Config.Policy.Deadline = []time.Duration{20 * time.Second, time.Minute, 3 * time.Minute, w.Longest}[w.Seed/7%4]
	}
}

// checkRunDeadline checks that a run does not end early because of its deadline.
func (w *world) checkRunDeadline(r *run.Run) {
	by := r.EndBy()
	if report := r.Attempt.Report; report != nil && report.Category == fault.Timeout { // the worker stops its program earlier
		by = by.Add(-limit.ReportMargin(by.Sub(r.Attempt.IntentAt)))
	}
	switch {
	case r.Policy.Deadline == 0:
		w.Fail("%s reached a deadline that it does not have", r.ID)
	case w.Time.Now.Add(2*w.Plan.Skew + time.Second).Before(by):
		w.Fail("%s reached its deadline at %s, want at %s", r.ID, w.Time.Now, by)
	}
}

// checkAttemptInTime checks that no attempt begins after the deadline of its run, and that no retry is
// planned for a later time.
func (w *world) checkAttemptInTime(r *run.Run) {
	by := r.EndBy()
	if by.IsZero() {
		return
	}
	if r.Attempt.IntentAt.After(by.Add(2*w.Plan.Skew + time.Second)) {
		w.Fail("attempt %d of %s began at %s, after its deadline at %s", r.Attempt.Number, r.ID, r.Attempt.IntentAt, by)
	}
	if r.State == run.Retrying && !r.RetryAt.Before(by) {
		w.Fail("%s is to be retried at %s, after its deadline at %s", r.ID, r.RetryAt, by)
	}
}
