package harness

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Calm reports whether only workers and the runner can fail.
func (w *Base) Calm() bool { return w.Plan.Reliable() && w.Plan.Interrupts == 0 }

// Patience is the additional bound of a wait if calls fail: steps are retried after up to a
// minute, repairs of the sweep after up to ten.
func (w *Base) Patience() time.Duration { return 2*time.Hour + 20*w.Config.SweepInterval }

// Overdue returns how long a wait has exceeded its bound, counted from end or from the last
// outage. It returns 0 during an outage or before the bound. kind is the bound in calm worlds,
// mean the bound in others.
func (w *Base) Overdue(end time.Time, kind, mean time.Duration) time.Duration {
	bound := kind
	if !w.Calm() {
		bound = mean
	}
	if end.IsZero() || w.AnyDown() {
		return 0
	}
	if w.UpSince.After(end) {
		end = w.UpSince
	}
	late := w.Time.Now.Sub(end) - bound - 2*w.Plan.Skew
	return max(late, 0)
}

// ActionsPending describes a pending action of a run, or returns "".
func ActionsPending(r *run.Run) string {
	for _, e := range r.Execution.Pending {
		if e.Kind == run.EffectAct {
			return fmt.Sprintf("the action %s", e.Action)
		}
		if e.Kind == run.EffectFollow {
			return "the start of what comes after it"
		}
	}
	return ""
}
