package run

import (
	"cmp"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/forecast"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Acting is the action on a run's violated constraints.
type Acting struct {
	Type spec.ActionType `json:"type"`
	At   time.Time       `json:"at"`
	// Waits: the run is in ActionWaiting. NotBefore is the end of the delay of retry_later and
	// of the other checks that are repeated; zero for a run in its job's queue. Until is the
	// limit of the wait.
	Waits     bool      `json:"waits,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	Until     time.Time `json:"until,omitzero"`
	// Due: the wait is over, and all constraints are evaluated again. Checks counts these
	// evaluations.
	Due    bool `json:"due,omitempty"`
	Checks int  `json:"checks,omitempty"`
	// Done: the constraints are met, or the action ignores the violations. The run may start.
	Done bool `json:"done,omitempty"`
}

// ViolationAction returns the action on the run's violated constraints, and the constraint that
// decides it. That is the first violated one with an action of its own, in the order of
// ConstraintNames; otherwise the first violated one, with the action of the job for all
// constraints. The default is skip, also for a constraint that could not be checked. The run
// must have a violation.
func (r Run) ViolationAction() (spec.Action, spec.Constraint) {
	skip := spec.Action{Type: spec.ActionSkip}
	var first spec.Constraint
	for _, name := range spec.ConstraintNames() {
		i := slices.IndexFunc(r.Violations, func(v spec.ConstraintViolation) bool { return v.Constraint == name })
		if i < 0 {
			continue
		}
		if r.Violations[i].Unchecked {
			return skip, name
		}
		if r.Actions != nil {
			if own, ok := r.Actions.Each[name]; ok {
				return own, name
			}
		}
		first = cmp.Or(first, name)
	}
	if r.Actions != nil && r.Actions.OnViolation != nil {
		return *r.Actions.OnViolation, first
	}
	return skip, first
}

// violates reports whether the run violates the constraint.
func (r Run) violates(name spec.Constraint) bool {
	for _, v := range r.Violations {
		if v.Constraint == name {
			return true
		}
	}
	return false
}

// AwaitsAdmission reports whether the run can take a slot of its pool or join its queue: it is
// Pending, or its action is done, and it is not queued for its key.
func (r Run) AwaitsAdmission() bool {
	return r.Slot.State == "" && r.KeySlot.State != platform.SlotQueued && (r.State == Pending || r.State == ActionRunning && r.Acting != nil && r.Acting.Done)
}

// ActionStarted: act begins the action on the violated constraints.
type ActionStarted struct{}

func (ActionStarted) acted(Run) bool { return true }

func (ActionStarted) apply(d *draft) error {
	if d.State != ActionPending {
		return nil
	}
	action, _ := d.ViolationAction()
	d.Acting = &Acting{Type: action.Type, At: d.now}
	d.enter(ActionRunning, string(action.Type), nil)
	d.endHopeless()
	return nil
}

// ActionEnded: act has sent the webhook or triggered the job of the action. A skip ends the run.
// The other actions wait for the slot of the job, for their delay, or start the run.
type ActionEnded struct {
	// Failure says why the action failed; empty for a success. Answer is the answer to a
	// webhook that succeeded.
	Failure, Answer string
	// Triggered is the run that was triggered; nil for other actions.
	Triggered *JobRun
	// Prediction is as in Admitted, for a run that waits now.
	Prediction *forecast.Prediction
}

func (ActionEnded) acted(Run) bool { return true }

func (f ActionEnded) apply(d *draft) error {
	if !d.ActionDue() {
		return nil
	}
	action, _ := d.ViolationAction()
	if f.Failure != "" {
		d.emit(Event{Type: EventActionFailed, Message: string(action.Type) + ": " + f.Failure})
		if action.Critical {
			why := fault.New(fault.ActionFailed, "the critical action %s failed: %s", action.Type, f.Failure)
			d.finish(Failed, why.Message, why)
			return nil
		}
	} else {
		d.recordTriggered(f.Triggered)
		d.emit(Event{Type: EventActionExecuted, Message: withAnswer(string(action.Type), f.Answer), Triggered: f.Triggered})
	}
	d.carryOut(action, f.Prediction)
	return nil
}

// ActionDue reports whether the action on the violated constraints must be carried out now.
func (r Run) ActionDue() bool {
	return r.State == ActionRunning && r.Acting != nil && !r.Acting.Waits && !r.Acting.Due && !r.Acting.Done
}

// carryOut carries out the part of an action that is in the record. The limit of the action
// counts from the first action on the run.
func (d *draft) carryOut(action spec.Action, p *forecast.Prediction) {
	until := d.Acting.At.Add(action.MostWait(d.Policy.CancelGrace))
	switch action.Type {
	case spec.ActionSkip:
		d.Skipped = true
		d.finish(Completed, "skipped: "+describe(d.Violations), nil)
		return
	case spec.ActionRetryLater:
		d.awaitAction(until, d.now.Add(action.RetryDelay()))
	case spec.ActionKillOld, spec.ActionWait:
		if !d.awaitsSlot() || d.JobSlot.State == platform.SlotHeld { // the awaited run holds no slot
			d.awaitAction(until, d.now.Add(checkDelay.Delay(d.Acting.Checks)))
			break
		}
		d.awaitQueued(until)
	default:
		if !d.violates(spec.MaxConcurrentRuns) {
			d.startAfterAction()
			return
		}
		d.awaitQueued(until)
	}
	if !d.State.Terminal() {
		d.predict(p)
	}
}

// awaitQueued sends the run into ActionWaiting and queues it for a slot of its job.
func (d *draft) awaitQueued(until time.Time) {
	if d.awaitAction(until, time.Time{}) {
		d.awaitJobSlot()
	}
}

// checkDelay is the time between two checks of wait and kill_old if no other run of the job has
// to end first.
var checkDelay = retry.Backoff{First: 2 * time.Second, Most: spec.ActionDelay, Multiplier: 2}

// withAnswer appends the answer of a webhook to the message of an action.
func withAnswer(message, answer string) string {
	if answer == "" {
		return message
	}
	return message + ": " + answer
}

// awaitAction sends the run into ActionWaiting, without slots. It returns false if the limit
// has already passed and the run has ended. That can happen because another violation can have
// another limit.
func (d *draft) awaitAction(until, notBefore time.Time) bool {
	acting := *d.Acting
	acting.Waits, acting.Until, acting.NotBefore = true, until, notBefore
	d.Acting = &acting
	if !d.now.Before(until) {
		d.reconcileAction()
		return false
	}
	d.Slot.State, d.Slot.Since = "", time.Time{}
	d.JobSlot.State, d.JobSlot.Since = "", time.Time{}
	d.enterTokenState(StepActionWaiting)
	return true
}

// startAfterAction begins the attempt if the run still holds its slot of the pool. Otherwise
// the run can be admitted again.
func (d *draft) startAfterAction() {
	acting := *d.Acting
	acting.Waits, acting.Done = false, true
	d.Acting = &acting
	d.changed = true
	if d.Slot.State == platform.SlotHeld {
		d.beginAttempt()
		return
	}
	d.completeToken()
}

// checkAgain ends the wait of the action. All constraints are then evaluated again.
func (d *draft) checkAgain() {
	acting := *d.Acting
	acting.Waits, acting.NotBefore, acting.Due = false, time.Time{}, true
	d.Acting = &acting
	d.changed = true
	d.completeToken()
}

// ActionRecheck: something outside of the run that its constraints depend on has changed, such
// as the last result of its job. It does not concern a run in the queue of its job.
type ActionRecheck struct{}

func (ActionRecheck) apply(d *draft) error {
	if d.State == ActionRunning && d.Acting != nil && d.Acting.Waits && !d.Acting.NotBefore.IsZero() {
		d.checkAgain()
	}
	return nil
}

// reconcileAction evaluates a run in ActionWaiting: its delay or its limit may have passed.
func (d *draft) reconcileAction() {
	a := *d.Acting
	v, late := d.Lateness(d.now)
	switch {
	case !a.Waits:
	case d.endAtDeadline("in the action " + string(a.Type)):
	case !d.now.Before(a.Until):
		d.timeOut("it did not lead to a start within %s: %s", a.Until.Sub(a.At), describe(d.Violations))
	case a.Type.Waits() && late:
		d.violate(v, EventConstraintViolated, describe([]spec.ConstraintViolation{v}))
		d.endHopeless()
	case a.NotBefore.IsZero() || d.now.Before(a.NotBefore):
		d.enterTokenState(StepActionWaiting)
	default:
		d.checkAgain()
	}
}

// actionUntil returns when the wait of the action is evaluated next.
func (r Run) actionUntil() time.Time {
	until := r.Acting.Until
	if at := r.Acting.NotBefore; !at.IsZero() && at.Before(until) {
		until = at
	}
	if end := r.windowEnd(); !end.IsZero() && r.Acting.Type.Waits() && end.Before(until) {
		until = end.Add(time.Second)
	}
	return r.untilDeadline(until)
}
