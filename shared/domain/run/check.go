package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// CheckBegun: constrain is about to evaluate constraints with calls that may take long. It
// enters ConditionRunning; without it, Checked does.
type CheckBegun struct{}

func (CheckBegun) acted(Run) bool { return true }

func (CheckBegun) apply(d *draft) error {
	d.enterConditionRunning()
	return nil
}

// enterConditionRunning moves a run whose constraints are due into ConditionRunning. It reports
// whether the run is in that state. Records of an earlier release are Pending with a held slot.
func (d *draft) enterConditionRunning() bool {
	if d.State == Pending && d.Slot.State == platform.SlotHeld {
		d.enter(ConditionPending, "", nil)
	}
	if d.State == ConditionPending {
		d.enter(ConditionRunning, "", nil)
	}
	return d.State == ConditionRunning
}

// Checked: the constraints of the run's job were evaluated, before the first attempt or after
// the wait of an action.
type Checked struct {
	// Violations are the violated constraints in the order of ConstraintNames;
	// empty means that all are met.
	Violations []spec.ConstraintViolation
	// Slots is the number of slots of the job. The commit takes one of them if the run starts
	// and has none; 0 takes none.
	Slots int
	// Checks is the Acting.Checks of the record that was evaluated. The fact changes nothing if
	// a later evaluation was committed.
	Checks int
}

func (Checked) acted(Run) bool { return true }

func (f Checked) apply(d *draft) error {
	again := d.ChecksAgain()
	switch {
	case again && f.Checks != d.Acting.Checks:
		return nil
	case !again && !d.enterConditionRunning():
		return nil
	}
	d.Tally.Checked += d.Constraints.CountBefore()
	if f.Slots > 0 && d.JobSlot.State != platform.SlotHeld && d.StartsDespite(f.Violations) {
		d.JobSlot = platform.Slot{Pool: platform.JobPool(d.JobID), Limit: f.Slots, State: platform.SlotHeld, Since: d.now}
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

// Evaluation returns the fact about evaluated constraints, except for the slot of the job,
// which the commit takes. limit is the slot limit of the job.
func (r Run) Evaluation(violations []spec.ConstraintViolation, limit int) Checked {
	f := Checked{Violations: violations, Slots: r.JobLimit(limit)}
	if slices.ContainsFunc(violations, func(v spec.ConstraintViolation) bool { return v.Constraint == spec.RequirePreviousSuccess }) {
		f.Slots = limit // an action that passes over the violation needs only a slot within the limit
	}
	if r.Acting != nil {
		f.Checks = r.Acting.Checks
	}
	return f
}

// WithoutSlot returns the Evaluation of a run for which no slot of the job is free. That
// violates maxConcurrentRuns, or requirePreviousSuccess if the run needs the only slot.
func (r Run) WithoutSlot(f Checked, limit int, now time.Time) Checked {
	v := spec.ConstraintViolation{Constraint: spec.MaxConcurrentRuns, At: now, Awaits: true}
	v.Message = fmt.Sprintf("all %d slots of the job are held or queued for", f.Slots)
	if r.Constraints.RequirePreviousSuccess && f.Slots != limit {
		v.Constraint, v.Message = spec.RequirePreviousSuccess, "previous_running: another run of the job is under way or queued"
	}
	violations := append(slices.Clone(f.Violations), v)
	slices.SortFunc(violations, func(a, b spec.ConstraintViolation) int {
		return slices.Index(spec.ConstraintNames(), a.Constraint) - slices.Index(spec.ConstraintNames(), b.Constraint)
	})
	return r.Evaluation(violations, limit)
}

// StartsDespite reports whether the run starts: there is no violation, or its action ignores the
// violations. It may still have to wait for a slot of its job.
func (r Run) StartsDespite(violations []spec.ConstraintViolation) bool {
	if len(violations) == 0 {
		return true
	}
	r.Violations = violations
	action, _ := r.ViolationAction()
	return action.Type.PassesOver() && !r.violates(spec.MaxConcurrentRuns)
}

// recordViolations records the violations of an evaluation. It returns false if they end the
// run.
func (d *draft) recordViolations(found []spec.ConstraintViolation) bool {
	d.Violations = found
	d.emit(Event{Type: EventConstraintViolated, Message: describe(found)})
	if d.violates(spec.PreRunHook) && d.Constraints.PreRunHook.Critical {
		why := fault.New(fault.HookRefused, "a critical constraint is not met: %s", describe(found))
		d.finish(Failed, why.Message, why)
		return false
	}
	return true
}

// ChecksAgain reports whether the constraints of the run are due again after the wait of its
// action.
func (r Run) ChecksAgain() bool { return r.State == ActionRunning && r.Acting != nil && r.Acting.Due }

// decideAgain decides about a run whose constraints were evaluated during its action. The run
// starts only if all constraints are met. Otherwise the action on the violated ones continues;
// act carries out the part outside of the record.
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
	case action.Type == spec.ActionRetryLater && action.MaxRetries > 0 && acting.Checks >= action.MaxRetries:
		d.timeOut("the constraints were not met in %d further checks: %s", acting.Checks, describe(d.Violations))
	case action.Type.PassesOver():
	default:
		if !repeated {
			d.emit(Event{Type: EventActionExecuted, Message: string(action.Type)})
		}
		d.carryOut(action, nil)
	}
}

// endHopeless ends a run that is later than its catch-up window allows, because waiting cannot
// help.
func (d *draft) endHopeless() bool {
	if !d.Acting.Type.Waits() || !d.violates(spec.CatchUpWindow) {
		return false
	}
	i := slices.IndexFunc(d.Violations, func(v spec.ConstraintViolation) bool { return v.Constraint == spec.CatchUpWindow })
	d.timeOut("waiting cannot help: %s", d.Violations[i])
	return true
}

// timeOut ends a run whose action did not lead to a start.
func (d *draft) timeOut(format string, args ...any) {
	why := fault.New(fault.ActionTimeout, "the action %s ends: "+format, append([]any{d.Acting.Type}, args...)...)
	d.finish(Failed, why.Message, why)
}

func describe(violations []spec.ConstraintViolation) string {
	texts := make([]string, len(violations))
	for i, v := range violations {
		texts[i] = v.String()
	}
	return strings.Join(texts, "; ")
}
