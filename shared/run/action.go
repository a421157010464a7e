package run

import (
	"cmp"
	"slices"
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

// The default limits of a wait and the default delay of an action.
const (
	ActionLimit = 24 * time.Hour
	ActionDelay = time.Minute
	KillLimit   = 10 * time.Minute
)

// KillSlack is the time that kill_old waits at least, in addition to the grace of a run.
const KillSlack = time.Minute

// wait returns how long a run may wait for the action. grace is the grace period of the
// runs of its job.
func (a Action) wait(grace time.Duration) time.Duration {
	if a.Type == ActionKillOld {
		return max(cmp.Or(a.Limit, KillLimit), grace+KillSlack)
	}
	return cmp.Or(a.Limit, ActionLimit)
}

// ViolationAction returns the action on the run's violated constraints, and the constraint
// that decides it: the first one with an action of its own, in the order of
// ConstraintNames. Without such a constraint it returns the job's action for all and the
// first violated constraint. Without one, and for a constraint that could not be checked,
// the action is skip. The run has a violation.
func (r Run) ViolationAction() (Action, Constraint) {
	skip := Action{Type: ActionSkip}
	var first Constraint
	for _, name := range ConstraintNames() {
		i := slices.IndexFunc(r.Violations, func(v ConstraintViolation) bool { return v.Constraint == name })
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
	return r.Slot.State == "" && r.KeySlot.State != SlotQueued && (r.State == Pending || r.State == ActionRunning && r.Acting != nil && r.Acting.Done)
}

// CheckBegun: constrain is about to evaluate constraints of the run's job by calls that may
// take long. Without it Checked enters ConditionRunning.
type CheckBegun struct{}

func (CheckBegun) acted(Run) bool { return true }

func (CheckBegun) apply(d *draft) error {
	d.checks()
	return nil
}

// checks moves a run whose constraints are due into ConditionRunning, and reports whether it
// is there. A run of version 0.4 or earlier is Pending when it has its slot.
func (d *draft) checks() bool {
	if d.State == Pending && d.Slot.State == SlotHeld {
		d.enter(ConditionPending, "", nil)
	}
	if d.State == ConditionPending {
		d.enter(ConditionRunning, "", nil)
	}
	return d.State == ConditionRunning
}

// Checked: constrain has evaluated the constraints of the run's job, and the commit
// takes the job's slot if the job has a limit and Violations do not include it.
type Checked struct {
	// Violations are the violated constraints in the order of ConstraintNames;
	// empty means that all are met.
	Violations []ConstraintViolation
}

func (Checked) acted(Run) bool { return true }

func (f Checked) apply(d *draft) error {
	if !d.checks() {
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
	if d.violates(PreRunHook) && d.Constraints.PreRunHook.Critical {
		why := fault.New(fault.HookRefused, "a critical constraint is not met: %s", describe(f.Violations))
		d.finish(Failed, why.Message, why)
		return nil
	}
	action, _ := d.ViolationAction()
	d.enter(ActionPending, string(action.Type), nil)
	return nil
}

func describe(violations []ConstraintViolation) string {
	texts := make([]string, len(violations))
	for i, v := range violations {
		texts[i] = v.String()
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
	action, _ := d.ViolationAction()
	d.Acting = &Acting{Type: action.Type, At: d.now}
	d.enter(ActionRunning, string(action.Type), nil)
	return nil
}

// ActionEnded: act has carried out the part of the action that is outside of the
// record: a webhook was sent, a job was triggered, older runs were cancelled. A skip
// ends the run. The other actions wait for the job's slot, or for their delay.
type ActionEnded struct {
	// Failure is the sentence that says why the action failed; empty if it did not.
	// Otherwise Answer is that of a webhook.
	Failure, Answer string
	// Triggered is the run that was triggered; nil for another action.
	Triggered *JobRun
	// Prediction is as in Admitted, of a run that waits now.
	Prediction *Prediction
}

func (ActionEnded) acted(Run) bool { return true }

func (f ActionEnded) apply(d *draft) error {
	if d.State != ActionRunning || d.Acting == nil || d.Acting.Waits || d.Acting.Done {
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
		d.triggered(f.Triggered)
		d.emit(Event{Type: EventActionExecuted, Message: withAnswer(string(action.Type), f.Answer), Triggered: f.Triggered})
	}
	until := d.now.Add(action.wait(d.Policy.CancelGrace))
	switch action.Type {
	case ActionSkip:
		d.Skipped = true
		d.finish(Completed, "skipped: "+describe(d.Violations), nil)
	case ActionRetryLater:
		d.awaitAction(until, d.now.Add(action.RetryDelay()))
		d.predict(f.Prediction)
	case ActionKillOld, ActionWait:
		d.awaitAction(until, time.Time{})
		d.awaitJobSlot()
		d.predict(f.Prediction)
	default:
		if d.violates(MaxConcurrentRuns) {
			d.awaitAction(until, time.Time{})
			d.awaitJobSlot()
			d.predict(f.Prediction)
			return nil
		}
		d.startAfterAction()
	}
	return nil
}

// RetryDelay returns the time between two checks of retry_later.
func (a Action) RetryDelay() time.Duration { return cmp.Or(a.Delay, ActionDelay) }

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

// awaitJobSlot puts the run in its job's queue.
func (d *draft) awaitJobSlot() { d.JobSlot = d.QueuedJobSlot() }

// QueuedJobSlot returns the place of the run in its job's queue, which is that of its
// creation. The run has a limit of its job.
func (r Run) QueuedJobSlot() Slot {
	return Slot{Pool: JobPool(r.JobID), Limit: r.Constraints.MaxConcurrentRuns, State: SlotQueued, Since: r.place()}
}

// place returns the scheduled time of a run, or its creation time if it has none. It
// orders the runs of a job.
func (r Run) place() time.Time { return later(r.ScheduledAt, r.CreatedAt) }

// Older reports whether the run is older than another one of its job, in the order of
// the job's queue.
func (r Run) Older(other Run) bool {
	return cmp.Or(r.place().Compare(other.place()), cmp.Compare(r.ID, other.ID)) < 0
}

// AwaitsOlder reports whether the run gets its job's slot only after all older runs have
// released theirs, whose end it has requested.
func (r Run) AwaitsOlder() bool {
	return r.AwaitsJobSlot() && r.Acting != nil && r.Acting.Type == ActionKillOld
}

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
		d.awaitJobSlot()
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
