package simulation

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// checkActions compares the actions of an ended run with its events, with the received messages
// and with the triggered runs.
func (w *world) checkActions(ctx context.Context, r *run.Run) {
	events, err := w.Process.Store.Events(ctx, r.Ref(), 0, 1000)
	if err != nil {
		w.Fail("cannot read the events of %s: %v", r.ID, err)
	}
	exceeded, actedOnViolations, triggered := 0, 0, map[string]int{}
	done := map[string]run.EventType{}
	var retries []string
	for _, e := range events {
		switch e.Type {
		case run.EventExpectedTimeExceeded:
			exceeded++
		case run.EventRetryScheduled:
			retries = append(retries, onEvent(r, spec.OnRetry, "#"+strconv.Itoa(e.Attempt))...)
		case run.EventActionExecuted, run.EventActionFailed:
			reason, kind := reasonOf(e.Message)
			if reason == string(run.TriggerAfter) { // see checkGraph
				continue
			}
			if strings.HasSuffix(e.Message, "does not apply after a run") {
				continue
			}
			switch {
			case reason == "":
				actedOnViolations++
			case done[reason] != "":
				w.Fail("%s has two records of its action %s", r.ID, reason)
			default:
				done[reason] = e.Type
			}
			w.checkAction(r, reason, kind, e.Type, triggered)
		}
	}
	most := 1
	if r.Acting != nil {
		most += r.Acting.Checks // each additional check may cause another action
	}
	if exceeded > 1 || actedOnViolations > most {
		w.Fail("%s: got %d events of an exceeded run time and %d of its action, want at most 1 and %d", r.ID, exceeded, actedOnViolations, most)
	}
	due := append(endActions(r), retries...)
	if exceeded > 0 {
		due = append(due, onEvent(r, spec.OnLate, "")...)
	}
	for _, reason := range due {
		if done[reason] == "" {
			w.Fail("%s ended as %s without its action %s", r.ID, r.State, reason)
		}
		delete(done, reason)
	}
	for _, reason := range slices.Sorted(maps.Keys(done)) {
		w.Fail("%s ended as %s with the action %s", r.ID, r.State, reason)
	}
	for _, other := range w.Records.Ordered {
		if other.ParentRun == r.ID && other.RetryOf == "" && other.Trigger != run.TriggerAfter && other.Trigger != run.TriggerFan {
			triggered[other.JobID]--
		}
	}
	for _, job := range slices.Sorted(maps.Keys(triggered)) {
		if missing := triggered[job]; missing != 0 {
			w.Fail("%s triggered runs of %s: %d are missing", r.ID, job, missing)
		}
	}
}

// reasonOf returns the reason and type of an action from the message of its event. An empty
// reason means an action on constraints before the run.
func reasonOf(message string) (reason string, kind spec.ActionType) {
	first, rest, _ := strings.Cut(message, ": ")
	if slices.Contains(spec.ActionTypes(), spec.ActionType(first)) {
		return "", spec.ActionType(first)
	}
	second, _, _ := strings.Cut(rest, ": ")
	return first, spec.ActionType(second)
}

// checkAction compares the event of an action with the calls that its receiver got.
func (w *world) checkAction(r *run.Run, reason string, kind spec.ActionType, event run.EventType, triggered map[string]int) {
	var action spec.Action
	accepted, refused := 0, 0
	if reason == "" { // the message is about one of the violated constraints
		for _, v := range r.Violations {
			accepted += w.Hooks.Accepted[harness.MessageID(r, string(v.Constraint))]
			refused += w.Hooks.Refused[harness.MessageID(r, string(v.Constraint))]
		}
		action = violationAction(r)
	} else {
		action = endAction(r, reason)
		accepted, refused = w.Hooks.Accepted[harness.MessageID(r, reason)], w.Hooks.Refused[harness.MessageID(r, reason)]
	}
	switch executed := event == run.EventActionExecuted; {
	case kind == spec.ActionWebhook && executed && accepted == 0:
		w.Fail("%s has the executed webhook %s, and its receiver accepted none", r.ID, reason)
	case kind == spec.ActionWebhook && !executed && refused == 0:
		w.Fail("%s has the failed webhook %s, and its receiver refused none", r.ID, reason)
	case kind == spec.ActionNotify:
		w.checkNotice(r, reason, executed)
	case kind == spec.ActionTriggerJob && executed:
		triggered[action.JobID]++
	}
}

// violationAction returns the action on the constraints that a run violated before it began:
// the own action of the first such constraint that has one, or else the action for all.
func violationAction(r *run.Run) (action spec.Action) {
	if r.Actions == nil {
		return action
	}
	for _, name := range []spec.Constraint{spec.MaxConcurrentRuns, spec.RequirePreviousSuccess, spec.CatchUpWindow, spec.PreRunHook} {
		if own, has := r.Actions.Each[name]; has && violated(r, name) {
			return own
		}
	}
	if r.Actions.OnViolation != nil {
		action = *r.Actions.OnViolation
	}
	return action
}

// endAction returns the action of a run for the reason. Its type is empty if the run has no
// such action.
func endAction(r *run.Run, reason string) (action spec.Action) {
	actions := r.Actions
	if actions == nil {
		return action
	}
	event, _ := spec.EndAction(reason).Event()
	list := map[spec.EndAction]*spec.Action{
		spec.OnSuccess: actions.OnSuccess, spec.OnFailure: actions.OnFailure, spec.OnSkip: actions.OnSkip, spec.OnRetry: actions.OnRetry, spec.OnLate: actions.OnLate,
	}
	found, ofEvent := list[event]
	own, has := actions.Each[spec.Constraint(reason)]
	switch {
	case ofEvent:
		name, _, _ := strings.Cut(reason, "#")
		if _, number, listed := strings.Cut(name, "-"); listed {
			index, _ := strconv.Atoi(number)
			return actions.Further[event][index-2]
		}
	case has:
		found = &own
	default:
		found = actions.OnViolation
	}
	if found != nil {
		action = *found
	}
	return action
}

// onEvent returns the reasons of the actions that must follow an event of a run, after which it
// may continue.
func onEvent(r *run.Run, event spec.EndAction, suffix string) (reasons []string) {
	if r.Actions == nil {
		return nil
	}
	for i := range 1 + len(r.Actions.Further[event]) {
		reason := string(event)
		if i > 0 {
			reason += "-" + strconv.Itoa(i+1)
		}
		reason += suffix
		if kind := endAction(r, reason).Type; kind == spec.ActionWebhook || kind == spec.ActionNotify || kind == spec.ActionTriggerJob {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// endActions returns the reasons of the actions that must follow the end of a run.
func endActions(r *run.Run) (reasons []string) {
	if r.State == run.Cancelled {
		return nil
	}
	end := spec.OnFailure
	switch {
	case r.Skipped:
		end = spec.OnSkip
	case r.State == run.Completed:
		end = spec.OnSuccess
	}
	reasons = onEvent(r, end, "")
	var candidates []string
	for _, name := range []spec.Constraint{spec.MaxExpectedRunTime, spec.MaxAllowedRunTime, spec.PostRunHook} {
		if violated(r, name) {
			candidates = append(candidates, string(name))
		}
	}
	for _, reason := range candidates {
		if kind := endAction(r, reason).Type; kind == spec.ActionWebhook || kind == spec.ActionTriggerJob {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}
