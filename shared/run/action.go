package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Acting is the action on a run's violated constraints.
type Acting struct {
	Type ActionType `json:"type"`
	At   time.Time  `json:"at"`
	// Waits: the run is in ActionWaiting. NotBefore is when retry_later ends its
	// delay, zero for another action; Until is the limit of the wait.
	Waits     bool      `json:"waits,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	Until     time.Time `json:"until,omitzero"`
	// Done: the run has its job's slot, or needs none, and may start.
	Done bool `json:"done,omitempty"`
}

const (
	// ActionLimit is the limit of a wait whose action has none.
	ActionLimit = time.Hour
	// ActionDelay is the delay of retry_later without one.
	ActionDelay = time.Minute
)

// ViolationAction returns the action on the run's violated constraints: that of the
// first one with an action of its own, in the order of ConstraintNames, or the job's
// action for all. Without one, and for a constraint that could not be checked, it is
// skip.
func (r Run) ViolationAction() Action {
	if r.Actions == nil {
		return Action{Type: ActionSkip}
	}
	for _, name := range ConstraintNames() {
		for _, v := range r.Violations {
			if v.Constraint != name {
				continue
			}
			if v.Unchecked {
				return Action{Type: ActionSkip}
			}
			if own, ok := r.Actions.Each[name]; ok {
				return own
			}
		}
	}
	if r.Actions.OnViolation != nil {
		return *r.Actions.OnViolation
	}
	return Action{Type: ActionSkip}
}

// violates reports whether the run violates the constraint.
func (r Run) violates(name Constraint) bool {
	for _, v := range r.Violations {
		if v.Constraint == name {
			return true
		}
	}
	return false
}

// AwaitsJobSlot reports whether the run is in its job's queue.
func (r Run) AwaitsJobSlot() bool { return r.JobSlot.State == SlotQueued && r.State == ActionRunning }

// AwaitsAdmission reports whether the run can take a slot of its pool: it is Pending,
// or the wait of its action is over.
func (r Run) AwaitsAdmission() bool {
	return r.Slot.State == "" && (r.State == Pending || r.State == ActionRunning && r.Acting != nil && r.Acting.Done)
}

// Checked: constrain has evaluated the constraints of the run's job, and the commit
// takes the job's slot if the job has a limit and Violations do not include it.
type Checked struct {
	// Violations are the violated constraints in the order of ConstraintNames;
	// empty means that all are met.
	Violations []ConstraintViolation
	// Refused is the sentence of a critical hook that refuses the run; empty
	// otherwise.
	Refused string
}

func (Checked) acted(Run) bool { return true }

func (f Checked) apply(d *draft) error {
	switch d.State {
	case Pending:
		if d.Slot.State != SlotHeld {
			return nil
		}
		d.enter(ConditionPending, "", nil)
		d.enter(ConditionRunning, "", nil)
	case ConditionPending:
		d.enter(ConditionRunning, "", nil)
	case ConditionRunning:
	default:
		return nil
	}
	d.Violations = f.Violations
	d.Tally.Checked += d.Constraints.countBefore()
	if c := d.Constraints; c != nil && c.MaxConcurrentRuns > 0 && !d.violates(MaxConcurrentRuns) {
		d.JobSlot = Slot{Pool: JobPool(d.JobID), Limit: c.MaxConcurrentRuns, State: SlotHeld, Since: d.now}
	}
	if len(f.Violations) == 0 {
		d.beginAttempt()
		return nil
	}
	d.emit(Event{Type: EventConstraintViolated, Message: describe(f.Violations)})
	if f.Refused != "" {
		why := fault.New(fault.HookRefused, "%s", f.Refused)
		d.finish(Failed, why.Message, why)
		return nil
	}
	d.enter(ActionPending, string(d.ViolationAction().Type), nil)
	return nil
}

func describe(violations []ConstraintViolation) string {
	texts := make([]string, len(violations))
	for i, v := range violations {
		texts[i] = fmt.Sprintf("%s: %s", v.Constraint, v.Message)
	}
	return strings.Join(texts, "; ")
}

// ActionStarted: act begins the action on the violated constraints.
type ActionStarted struct{}

func (ActionStarted) acted(Run) bool { return true }

func (ActionStarted) apply(d *draft) error {
	if d.State != ActionPending {
		return nil
	}
	d.Acting = &Acting{Type: d.ViolationAction().Type, At: d.now}
	d.enter(ActionRunning, string(d.Acting.Type), nil)
	return nil
}

// ActionEnded: act has carried out the part of the action that is outside of the
// record: a webhook was sent, a job was triggered, older runs were cancelled. A skip
// ends the run. The other actions wait for the job's slot, or for their delay.
type ActionEnded struct {
	// Failure is the sentence that says why the action failed; empty if it did not.
	// Otherwise Answer is that of a webhook.
	Failure, Answer string
	// Newer is the number of newer runs that hold slots of the job, for kill_old: it
	// waits until all older ones are gone.
	Newer int
}

func (ActionEnded) acted(Run) bool { return true }

func (f ActionEnded) apply(d *draft) error {
	if d.State != ActionRunning || d.Acting == nil || d.Acting.Waits || d.Acting.Done {
		return nil
	}
	action := d.ViolationAction()
	if f.Failure != "" {
		d.emit(Event{Type: EventActionFailed, Message: string(action.Type) + ": " + f.Failure})
		if action.Critical {
			why := fault.New(fault.ActionFailed, "the critical action %s failed: %s", action.Type, f.Failure)
			d.finish(Failed, why.Message, why)
			return nil
		}
	} else {
		d.emit(Event{Type: EventActionExecuted, Message: withAnswer(string(action.Type), f.Answer)})
	}
	limit := action.Limit
	if limit == 0 {
		limit = ActionLimit
	}
	switch action.Type {
	case ActionSkip:
		d.Skipped = true
		d.finish(Completed, "skipped: "+describe(d.Violations), nil)
	case ActionRetryLater:
		delay := action.Delay
		if delay == 0 {
			delay = ActionDelay
		}
		d.awaitAction(d.now.Add(limit), d.now.Add(delay))
	case ActionKillOld:
		d.awaitAction(d.now.Add(max(limit, d.Policy.CancelGrace+time.Minute)), time.Time{})
		d.awaitJobSlot(1 + f.Newer)
	case ActionWait:
		d.awaitAction(d.now.Add(limit), time.Time{})
		d.awaitJobSlot(d.Constraints.MaxConcurrentRuns)
	default:
		if d.violates(MaxConcurrentRuns) {
			d.awaitAction(d.now.Add(limit), time.Time{})
			d.awaitJobSlot(d.Constraints.MaxConcurrentRuns)
			return nil
		}
		d.startAfterAction()
	}
	return nil
}

// withAnswer returns the message of an action with the answer of a webhook.
func withAnswer(message, answer string) string {
	if answer == "" {
		return message
	}
	return message + ": " + answer
}

// awaitAction sends the run into ActionWaiting, without slots.
func (d *draft) awaitAction(until, notBefore time.Time) {
	acting := *d.Acting
	acting.Waits, acting.Until, acting.NotBefore = true, until, notBefore
	d.Acting = &acting
	d.Slot.State, d.Slot.Since = "", time.Time{}
	d.JobSlot.State, d.JobSlot.Since = "", time.Time{}
	d.await(StepActionWaiting)
}

// awaitJobSlot puts the run in its job's queue, at the place of its creation.
func (d *draft) awaitJobSlot(limit int) {
	d.JobSlot = Slot{Pool: JobPool(d.JobID), Limit: limit, State: SlotQueued, Since: d.Place()}
}

// Place orders the runs of a job: by the time that they are for, or by their creation.
func (r Run) Place() time.Time { return later(r.ScheduledAt, r.CreatedAt) }

// startAfterAction begins the attempt, or lets the run queue for the slot of its pool
// that it has given back.
func (d *draft) startAfterAction() {
	acting := *d.Acting
	acting.Waits, acting.Done = false, true
	d.Acting = &acting
	d.changed = true
	if d.Slot.State == SlotHeld {
		d.beginAttempt()
		return
	}
	d.release()
}

// JobGranted: the run is the first in its job's queue, and the commit takes a free
// slot of the job.
type JobGranted struct{}

func (JobGranted) apply(d *draft) error {
	if !d.AwaitsJobSlot() {
		return nil
	}
	d.JobSlot.State, d.JobSlot.Since = SlotHeld, d.now
	d.startAfterAction()
	return nil
}

// reconcileAction evaluates a run in ActionWaiting: its delay is over, or its limit.
func (d *draft) reconcileAction() {
	a := *d.Acting
	switch {
	case !a.Waits:
	case !d.now.Before(a.Until):
		why := fault.New(fault.ActionTimeout, "the action %s did not end within %s", a.Type, a.Until.Sub(a.At))
		d.finish(Failed, why.Message, why)
	case a.NotBefore.IsZero() || d.now.Before(a.NotBefore):
		d.await(StepActionWaiting)
	case d.Constraints == nil || d.Constraints.MaxConcurrentRuns == 0:
		d.startAfterAction()
	default:
		a.NotBefore = time.Time{}
		d.Acting = &a
		d.awaitJobSlot(d.Constraints.MaxConcurrentRuns)
		d.await(StepActionWaiting)
	}
}

// actionUntil is when the wait of the action is evaluated next.
func (r Run) actionUntil() time.Time {
	if !r.Acting.NotBefore.IsZero() && r.Acting.NotBefore.Before(r.Acting.Until) {
		return r.Acting.NotBefore
	}
	return r.Acting.Until
}
