package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// MaxLineage is the maximum number of jobs that trigger each other in a chain.
const MaxLineage = 8

// ActionOf returns the job's action for an event of the run. ok is false without an action, or if
// the action cannot follow an event.
func (r Run) ActionOf(end spec.EndAction) (action spec.Action, ok bool) {
	if r.Actions == nil {
		return spec.Action{}, false
	}
	event, index, _ := end.Parts()
	if slices.Contains(spec.EndActions(), event) {
		actions := r.Actions.On(event)
		if index < 0 || index >= len(actions) {
			return spec.Action{}, false
		}
		return actions[index], actions[index].Type.Follows()
	}
	found := r.Actions.OnViolation
	if own, has := r.Actions.Each[spec.Constraint(end)]; has {
		found = &own
	}
	if found == nil {
		return spec.Action{}, false
	}
	return *found, found.Type.Follows()
}

// afterRun lists the constraints that are evaluated after the start of a run.
var afterRun = []spec.Constraint{spec.MaxExpectedRunTime, spec.MaxAllowedRunTime, spec.PostRunHook}

// notePostRunHook records a violation of the post-run hook. It reports whether a critical hook
// refuses the run.
func (d *draft) notePostRunHook(a *spec.HookAnswer) (refused bool) {
	if a == nil || d.Constraints == nil || d.Constraints.PostRunHook == nil {
		return false
	}
	hook := d.Constraints.PostRunHook
	v, violated := hook.Violation(spec.PostRunHook, *a, d.now)
	if !violated {
		return false
	}
	d.violate(v, EventConstraintViolated, describe([]spec.ConstraintViolation{v}))
	return hook.Critical
}

// violate records a violation that was found after the start, and emits the event. The
// constraints that are met are counted at the end of the run.
func (d *draft) violate(v spec.ConstraintViolation, event EventType, message string) {
	d.Tally.Checked++
	d.Violations = append(slices.Clone(d.Violations), v)
	d.emit(Event{Type: event, Message: message})
}

// endActions adds the effects of the actions that follow the end of the run. An action that
// does not apply after a run gets an event instead.
func (d *draft) endActions() {
	if d.Actions == nil || d.State == Cancelled {
		return
	}
	for _, name := range afterRun {
		if !d.violates(name) {
			continue
		}
		action, ok := d.ActionOf(spec.EndAction(name))
		switch {
		case ok:
			d.effects = append(d.effects, Effect{Kind: EffectAct, Action: spec.EndAction(name)})
		case action.Type != "":
			d.emit(Event{Type: EventActionFailed, Message: fmt.Sprintf("%s: %s does not apply after a run", name, action.Type)})
		}
	}
	end := spec.OnFailure
	switch {
	case d.Skipped:
		end = spec.OnSkip
	case d.State == Completed:
		end = spec.OnSuccess
	}
	d.actOn(end, 0)
}

// EndActionDone: an action that follows the end of the run was carried out, or failed. It
// changes nothing if that is already recorded.
type EndActionDone struct {
	Action spec.EndAction
	// Failure says why the action failed; empty for a success. Answer is the answer to a
	// webhook that succeeded.
	Failure, Answer string
	// Triggered is the run that was triggered; nil for other actions.
	Triggered *JobRun
}

func (f EndActionDone) apply(d *draft) error {
	pending := func(e Effect) bool { return e.Kind == EffectAct && e.Action == f.Action }
	if !slices.ContainsFunc(d.Execution.Pending, pending) {
		return nil
	}
	d.Execution.Pending = pendingEffects(d.Execution.Pending, pending)
	action, _ := d.ActionOf(f.Action)
	d.keepFailed(f, action.Type)
	e := Event{Type: EventActionExecuted, Message: withAnswer(fmt.Sprintf("%s: %s", f.Action, action.Type), f.Answer), Triggered: f.Triggered}
	d.recordTriggered(f.Triggered)
	if f.Failure != "" {
		e.Type, e.Message = EventActionFailed, fmt.Sprintf("%s: %s: %s", f.Action, action.Type, f.Failure)
	}
	d.emit(e)
	return nil
}

// NotifyFor is the time after the event of a run during which an action is repeated whose receiver
// does not take it.
const NotifyFor = 24 * time.Hour

// ActionUntaken: the receiver of an action has not taken it. The sweep repeats the action. The fact
// changes nothing if the end of the action is recorded.
type ActionUntaken struct {
	Action spec.EndAction
	// Answer says why, for clients.
	Answer string
}

func (f ActionUntaken) apply(d *draft) error {
	i := slices.IndexFunc(d.Execution.Pending, func(e Effect) bool { return e.Kind == EffectAct && e.Action == f.Action })
	if i < 0 {
		return nil
	}
	d.Execution.Pending = slices.Clone(d.Execution.Pending)
	e := &d.Execution.Pending[i]
	e.Tries, e.Answer, e.TriedAt = e.Tries+1, limit.Cut(f.Answer, limit.Message), d.now
	d.changed = true
	return nil
}

// UntakenAction is an action that is repeated, because its receiver has not taken it.
type UntakenAction struct {
	Effect
	Type spec.ActionType
	// NextAt is the time of the next try, GiveUpAt when the action fails instead.
	NextAt, GiveUpAt time.Time
}

// UntakenActions returns the actions of the run that are repeated.
func (r Run) UntakenActions() (found []UntakenAction) {
	for _, e := range r.Execution.Pending {
		if e.Kind != EffectAct || e.Tries == 0 {
			continue
		}
		action, _ := r.ActionOf(e.Action)
		since := e.At
		if since.IsZero() {
			since = r.EndedAt
		}
		found = append(found, UntakenAction{Effect: e, Type: action.Type, NextAt: r.Execution.ActBy, GiveUpAt: since.Add(NotifyFor)})
	}
	return found
}

// effectsDone removes the pending effects on the execution. Actions of the job stay pending
// until EndActionDone, and EffectFollow until Followed.
func (d *draft) effectsDone() {
	if slices.ContainsFunc(d.Execution.Pending, Effect.onExecution) {
		d.Execution.Pending = pendingEffects(d.Execution.Pending, Effect.onExecution)
		d.changed = true
	}
}

// onExecution reports whether the effect is on the execution of the run. The others do not depend
// on it.
func (e Effect) onExecution() bool { return e.Kind != EffectAct && e.Kind != EffectFollow }

// pendingEffects returns the effects for which done is false; nil if there is no such effect.
func pendingEffects(effects []Effect, done func(Effect) bool) (left []Effect) {
	for _, e := range effects {
		if !done(e) {
			left = append(left, e)
		}
	}
	return left
}

// expectedBy returns when the running attempt exceeds the expected run time of its job; zero
// without an expected time, or if the excess is already recorded.
func (r Run) expectedBy() time.Time {
	c := r.Constraints
	if c == nil || c.MaxExpectedRunTime == 0 || r.Attempt.StartedAt.IsZero() || r.violates(spec.MaxExpectedRunTime) {
		return time.Time{}
	}
	return r.Attempt.StartedAt.Add(c.MaxExpectedRunTime)
}

// noteExpectedTime records, once per run, that the attempt exceeds the expected run time.
func (d *draft) noteExpectedTime() {
	by := d.expectedBy()
	if by.IsZero() || d.now.Before(by) {
		return
	}
	message := fmt.Sprintf("the attempt runs for %s, want at most %s",
		d.now.Sub(d.Attempt.StartedAt).Round(time.Second), d.Constraints.MaxExpectedRunTime)
	d.violate(spec.ConstraintViolation{Constraint: spec.MaxExpectedRunTime, Message: message, At: d.now}, EventExpectedTimeExceeded, message)
	d.actOn(spec.OnLate, 0)
}

// noteAllowedTime records the violation of a job's run that ends because of its time limit.
func (d *draft) noteAllowedTime(why *fault.Fault) {
	if why != nil && why.Code == fault.RunTimeout && d.Work.Kind == spec.KindJob && !d.violates(spec.MaxAllowedRunTime) {
		v := spec.ConstraintViolation{Constraint: spec.MaxAllowedRunTime, Message: why.Message, At: d.now}
		d.violate(v, EventConstraintViolated, describe([]spec.ConstraintViolation{v}))
	}
}
