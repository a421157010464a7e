package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// CheckBegun: constrain is about to evaluate constraints of the run's job by calls that may
// take long. Without it Checked enters ConditionRunning.
type CheckBegun struct{}

func (CheckBegun) acted(Run) bool { return true }

func (CheckBegun) apply(d *draft) error {
	d.checks()
	return nil
}

// checks moves a run whose constraints are due into ConditionRunning, and reports whether it
// is there. A record of an earlier release is Pending when the run has its slot.
func (d *draft) checks() bool {
	if d.State == Pending && d.Slot.State == SlotHeld {
		d.enter(ConditionPending, "", nil)
	}
	if d.State == ConditionPending {
		d.enter(ConditionRunning, "", nil)
	}
	return d.State == ConditionRunning
}

// Checked: the constraints of the run's job were evaluated, before the first attempt or again
// when the wait of an action was over.
type Checked struct {
	// Violations are the violated constraints in the order of ConstraintNames;
	// empty means that all are met.
	Violations []ConstraintViolation
	// Slots is the number of slots of the job of which the commit takes one, if the run is
	// to start and has none; 0 takes none.
	Slots int
	// Checks is Acting.Checks of the run that was evaluated. A later evaluation counts.
	Checks int
}

func (Checked) acted(Run) bool { return true }

func (f Checked) apply(d *draft) error {
	again := d.ChecksAgain()
	switch {
	case again && f.Checks != d.Acting.Checks:
		return nil
	case !again && !d.checks():
		return nil
	}
	d.Tally.Checked += d.Constraints.countBefore()
	if f.Slots > 0 && d.JobSlot.State != SlotHeld && d.StartsDespite(f.Violations) {
		d.JobSlot = Slot{Pool: JobPool(d.JobID), Limit: f.Slots, State: SlotHeld, Since: d.now}
	}
	switch {
	case again:
		f.decideAgain(d)
	case len(f.Violations) == 0:
		d.Violations = nil
		d.beginAttempt()
	case d.recordViolations(f.Violations):
		action, _ := d.ViolationAction()
		d.enter(ActionPending, string(action.Type), nil)
	}
	return nil
}

// Evaluation returns the fact about the constraints of a run that were evaluated, but for its
// slot, which the commit takes. limit is that of the job.
func (r Run) Evaluation(violations []ConstraintViolation, limit int) Checked {
	f := Checked{Violations: violations, Slots: r.JobLimit(limit)}
	if slices.ContainsFunc(violations, func(v ConstraintViolation) bool { return v.Constraint == RequirePreviousSuccess }) {
		f.Slots = limit // an action that passes over the violation needs no more
	}
	if r.Acting != nil {
		f.Checks = r.Acting.Checks
	}
	return f
}

// WithoutSlot is Evaluation of a run for which none of the slots is free. That is a violation
// of maxConcurrentRuns, or else of requirePreviousSuccess: the run needs the only slot then.
func (r Run) WithoutSlot(f Checked, limit int, now time.Time) Checked {
	v := ConstraintViolation{Constraint: MaxConcurrentRuns, At: now, Awaits: true}
	v.Message = fmt.Sprintf("all %d slots of the job are held or queued for", f.Slots)
	if r.Constraints.RequirePreviousSuccess && f.Slots != limit {
		v.Constraint, v.Message = RequirePreviousSuccess, "previous_running: another run of the job is under way or queued"
	}
	violations := append(slices.Clone(f.Violations), v)
	slices.SortFunc(violations, func(a, b ConstraintViolation) int {
		return slices.Index(ConstraintNames(), a.Constraint) - slices.Index(ConstraintNames(), b.Constraint)
	})
	return r.Evaluation(violations, limit)
}

// StartsDespite reports whether the run starts with the violations: the list is empty, or the
// action passes over them. It may have to wait for a slot of its job.
func (r Run) StartsDespite(violations []ConstraintViolation) bool {
	if len(violations) == 0 {
		return true
	}
	r.Violations = violations
	action, _ := r.ViolationAction()
	return action.Type.passesOver() && !r.violates(MaxConcurrentRuns)
}

// recordViolations records what an evaluation has found. It returns false if that ends the run.
func (d *draft) recordViolations(found []ConstraintViolation) bool {
	d.Violations = found
	d.emit(Event{Type: EventConstraintViolated, Message: describe(found)})
	if d.violates(PreRunHook) && d.Constraints.PreRunHook.Critical {
		why := fault.New(fault.HookRefused, "a critical constraint is not met: %s", describe(found))
		d.finish(Failed, why.Message, why)
		return false
	}
	return true
}

// ChecksAgain reports whether the constraints of a run are due again, because the wait of
// its action is over.
func (r Run) ChecksAgain() bool { return r.State == ActionRunning && r.Acting != nil && r.Acting.Due }

// decideAgain decides about a run whose constraints were evaluated during its action. It
// starts only if all of them are met. Otherwise the action of the violated ones continues;
// one that is carried out outside of the record is up to act.
func (f Checked) decideAgain(d *draft) {
	acting := *d.Acting
	acting.Due = false
	acting.Checks++
	d.Acting = &acting
	if len(f.Violations) == 0 {
		d.emit(Event{Type: EventConditionsMet})
		d.startAfterAction()
		return
	}
	if !d.recordViolations(f.Violations) {
		return
	}
	action, _ := d.ViolationAction()
	repeated := action.Type == acting.Type
	acting.Type = action.Type
	switch {
	case d.endHopeless():
	case action.Type == ActionRetryLater && action.MaxRetries > 0 && acting.Checks >= action.MaxRetries:
		d.timeOut("the constraints were not met in %d further checks: %s", acting.Checks, describe(d.Violations))
	case action.Type.passesOver():
	default:
		if !repeated {
			d.emit(Event{Type: EventActionExecuted, Message: string(action.Type)})
		}
		d.carryOut(action, nil)
	}
}

// endHopeless ends a run whose action would wait for something that cannot happen: the run
// is later than its window allows, and it will not be earlier.
func (d *draft) endHopeless() bool {
	if !d.Acting.Type.waits() || !d.violates(CatchUpWindow) {
		return false
	}
	i := slices.IndexFunc(d.Violations, func(v ConstraintViolation) bool { return v.Constraint == CatchUpWindow })
	d.timeOut("waiting cannot help: %s", d.Violations[i])
	return true
}

// timeOut ends a run whose action does not lead to a start.
func (d *draft) timeOut(format string, args ...any) {
	why := fault.New(fault.ActionTimeout, "the action %s ends: "+format, append([]any{d.Acting.Type}, args...)...)
	d.finish(Failed, why.Message, why)
}

func describe(violations []ConstraintViolation) string {
	texts := make([]string, len(violations))
	for i, v := range violations {
		texts[i] = v.String()
	}
	return strings.Join(texts, "; ")
}
