package explain

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Check is the result of a constraint before a run if it were evaluated now.
type Check struct {
	Constraint spec.Constraint
	// Known: the result is known. It is unknown for a hook, which is called only when the run has a
	// slot.
	Known, Met bool
	Message    string
	// Action is the action if the constraint is violated.
	Action spec.ActionType
}

// Planned explains a run that does not exist yet.
type Planned struct {
	// Accepted: a request for the run would be accepted.
	Accepted bool
	Explanation
	Checks []Check
}

// Plan explains a new run, as returned by run.New, without creating it.
func Plan(r run.Run, f Facts) Planned {
	p := Planned{Accepted: true, Explanation: Explanation{Position: -1}, Checks: checks(&r, f)}
	p.limits(r, f)
	p.plan(r, f)
	if p.Accepted {
		p.fallbacks(r, f)
	}
	switch p.Reason {
	case QueueFull, KeyOverflowed, Skipped:
	default:
		p.expect(r, f)
	}
	return p
}

func (p *Planned) plan(r run.Run, f Facts) {
	q := &f.Pool
	poolFull := q.Draining || q.Queued > 0 || q.Limit > 0 && q.Held >= q.Limit
	room := run.Room{PoolFull: poolFull}
	if f.Key.applies() {
		room.KeyFull, room.KeyQueued = f.Key.Queued > 0 || f.Key.Held >= f.Key.Limit, f.Key.Queued
	}
	admission := r.Admit(room)
	switch {
	case r.State == run.PreRun:
		p.because(Scheduled, r.ScheduledAt, "the run would wait for %s", stamp(r.ScheduledAt))
	case q.QueueLimit > 0 && q.Queued >= q.QueueLimit:
		p.Accepted = false
		p.because(QueueFull, time.Time{}, "the queue of pool %s is full: %d runs are waiting", q.Name, q.Queued)
	case admission == run.AdmitReject:
		p.Accepted = false
		p.because(QueueFull, time.Time{}, "the queue of key %s is full: %d runs are waiting", f.Key.Name, f.Key.Queued)
	case admission == run.AdmitSkip:
		p.because(KeyOverflowed, time.Time{}, "the run would be skipped: %d runs of key %s are queued", f.Key.Queued, f.Key.Name)
	case admission == run.AdmitKeyQueue, admission == run.AdmitReplace:
		f.Key.Position, r.KeySlot.State = f.Key.Ahead, platform.SlotQueued
		if admission == run.AdmitReplace && f.Key.Position > 0 { // the first queued run is replaced
			f.Key.Position--
		}
		p.queued(r, f, f.Key, KeyFull, "key")
	case admission == run.AdmitQueue:
		q.Position = q.Ahead
		r.Slot.State = platform.SlotQueued
		p.queuedInPool(r, f)
	case len(r.Violations) > 0:
		p.violated(r, f)
	default:
		p.because(StartsNow, time.Time{}, "nothing blocks the run: it would start at once")
	}
	p.Until = time.Time{}
	if r.State == run.PreRun {
		p.Until = r.ScheduledAt
	}
}

// violated explains the action on the constraints that the run would violate.
func (p *Planned) violated(r run.Run, f Facts) {
	action, name := r.ViolationAction()
	what := fmt.Sprintf("the run would violate %s: the action is %s", name, action.Type)
	full := r.Constraints.MaxConcurrentRuns > 0 && f.Job != nil && f.Job.Held+f.Job.Queued >= f.Job.Limit
	switch action.Type {
	case spec.ActionSkip:
		p.because(Skipped, time.Time{}, "%s", what)
	case spec.ActionRetryLater:
		p.because(ActionDelayed, time.Time{}, "%s", what)
	default:
		if !full {
			p.because(StartsNow, time.Time{}, "%s, and the run starts after it", what)
			return
		}
		p.because(JobFull, time.Time{}, "%s; %d of %d slots of job %s are held", what, f.Job.Held, f.Job.Limit, f.Job.Name)
		p.Position = f.Job.Ahead
	}
	if name == spec.MaxConcurrentRuns && len(r.Violations) == 1 && f.Job.Queued == 0 {
		p.Change = f.Job.end(r)
	}
}

// checks evaluates the constraints before the run, and adds the violated ones to r.
func checks(r *run.Run, f Facts) []Check {
	c := r.Constraints
	found := []Check{}
	if c == nil {
		return found
	}
	check := func(name spec.Constraint, known, met bool, format string, args ...any) {
		one := Check{Constraint: name, Known: known, Met: met, Message: fmt.Sprintf(format, args...)}
		would := run.Run{Actions: r.Actions, Violations: []spec.ConstraintViolation{{Constraint: name}}}
		action, _ := would.ViolationAction()
		one.Action = action.Type
		if known && !met {
			r.Violations = append(r.Violations, spec.ConstraintViolation{Constraint: name, Message: one.Message, At: f.Now})
		}
		found = append(found, one)
	}
	ahead := r.State == run.PreRun // at the scheduled time the facts may differ
	if c.MaxConcurrentRuns > 0 && f.Job != nil {
		met := f.Job.Held+f.Job.Queued < f.Job.Limit
		check(spec.MaxConcurrentRuns, !ahead, met, "%d of %d slots of the job are held, %d runs wait for one", f.Job.Held, f.Job.Limit, f.Job.Queued)
	}
	switch {
	case !c.RequirePreviousSuccess:
	case f.Previous != nil:
		check(spec.RequirePreviousSuccess, !ahead, false, "%s", f.Previous.Message)
	case f.Last == nil:
		check(spec.RequirePreviousSuccess, !ahead, true, "the job has no result")
	default:
		check(spec.RequirePreviousSuccess, !ahead, true, "run %s %s", f.Last.RunID, outcome(*f.Last))
	}
	if c.CatchUpWindow > 0 {
		check(spec.CatchUpWindow, true, true, "the run would not be late")
	}
	if c.PreRunHook != nil {
		check(spec.PreRunHook, false, false, "%s is asked when the run has a slot", host(c.PreRunHook.URL))
	}
	return found
}

func outcome(r run.Result) string {
	if r.Success {
		return "succeeded"
	}
	return "failed"
}
