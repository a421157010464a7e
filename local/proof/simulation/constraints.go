package simulation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// maxLineage is how many jobs may trigger one another in a row.
const maxLineage = 8

// checkJobRun compares the record of a job's run with its previous version; nil for a
// new one.
func (w *world) checkJobRun(before, r *run.Run) {
	if r.JobID == "" {
		return
	}
	w.checkKey(before, r)
	if before == nil {
		w.checkLineage(r)
	} else {
		w.checkDefinition(before, r)
		if r.JobSlot.State == run.SlotHeld && before.JobSlot.State != run.SlotHeld {
			w.checkJobGrant(before, r)
		}
		if r.Attempt.Number > 0 && before.Attempt.Number == 0 {
			w.checkConcurrent(r)
			w.checkPrevious(r)
		}
	}
	if r.Cancel != nil && (before == nil || before.Cancel == nil) {
		w.checkReplaced(r)
	}
	if r.State.Terminal() && (before == nil || !before.State.Terminal()) {
		w.checkSkip(r)
		if !r.Skipped {
			w.results[r.JobID] = append(w.results[r.JobID], result{w.time.now, r.State == run.Completed})
		}
	}
}

// checkPrevious checks that a run which requires the success of the previous one does
// not begin after a failure. One that ended during the evaluation or after it does not
// count: an action that waits does not evaluate the constraints again.
func (w *world) checkPrevious(r *run.Run) {
	results, m := w.results[r.JobID], w.jobs[r.JobID]
	if r.Constraints == nil || !r.Constraints.RequirePreviousSuccess || violated(r, run.RequirePreviousSuccess) || !w.calm() || m == nil || m.deleted {
		return
	}
	evaluated := w.time.now
	if r.Acting != nil {
		evaluated = r.Acting.At.Add(-2 * w.plan.skew)
	}
	for len(results) > 0 && evaluated.Sub(results[len(results)-1].at) <= hookTime {
		results = results[:len(results)-1]
	}
	if len(results) > 0 && !results[len(results)-1].success && len(results) == len(w.results[r.JobID]) {
		w.fail("%s began after the failure at %s", r.ID, results[len(results)-1].at.Sub(start))
	}
}

// checkLineage checks that jobs do not trigger one another in a circle or without
// a bound.
func (w *world) checkLineage(r *run.Run) {
	if len(r.Lineage) >= maxLineage || slices.Contains(r.Lineage, r.JobID) {
		w.fail("%s has the lineage %v, want fewer than %d other jobs", r.ID, r.Lineage, maxLineage)
	}
	parent := w.records.byID[r.ParentRun]
	if r.ParentRun == "" {
		return
	}
	if parent == nil || !slices.Equal(r.Lineage, append(slices.Clone(parent.Lineage), parent.JobID)) {
		w.fail("%s has the lineage %v, which is not that of its parent %q", r.ID, r.Lineage, r.ParentRun)
	}
}

// checkDefinition checks that a run takes over a changed definition when it leaves
// PreRun, and never later.
func (w *world) checkDefinition(before, r *run.Run) {
	if before.State != run.PreRun && r.JobVersion != before.JobVersion {
		w.fail("%s changed from version %d of its job to %d in %s", r.ID, before.JobVersion, r.JobVersion, before.State)
	}
	m := w.jobs[r.JobID]
	if before.State != run.PreRun || r.State == run.PreRun || r.State == run.Cancelled || m == nil || m.record == nil || !w.calm() || m.deleted {
		return
	}
	if r.JobVersion != m.record.Version {
		w.fail("%s left PreRun with version %d of its job, want %d", r.ID, r.JobVersion, m.record.Version)
	}
}

// checkReplaced checks that kill_old ends older runs of the same job only.
func (w *world) checkReplaced(r *run.Run) {
	job, replaced := strings.CutPrefix(r.Cancel.By, "job:")
	if !replaced {
		return
	}
	newer := w.records.byID[r.Cancel.Reason[strings.LastIndex(r.Cancel.Reason, " ")+1:]]
	switch {
	case newer == nil || newer.JobID != r.JobID || job != r.JobID:
		w.fail("%s of job %s was replaced by %s: %s", r.ID, r.JobID, r.Cancel.By, r.Cancel.Reason)
	case !older(r, newer):
		w.fail("%s was replaced by %s, which is older", r.ID, newer.ID)
	case !slices.ContainsFunc(actionsOf(newer), func(a run.Action) bool { return a.Type == run.ActionKillOld }):
		w.fail("%s was replaced by %s, which has no kill_old", r.ID, newer.ID)
	}
}

// actionsOf returns the actions of a run on violated constraints.
func actionsOf(r *run.Run) (actions []run.Action) {
	if r.Actions == nil {
		return nil
	}
	if r.Actions.OnViolation != nil {
		actions = append(actions, *r.Actions.OnViolation)
	}
	for _, name := range run.ConstraintNames() {
		if own, ok := r.Actions.Each[name]; ok {
			actions = append(actions, own)
		}
	}
	return actions
}

// waitLimits returns how long the action of a run may wait: the limits of its actions of
// that type, of which one decides.
func waitLimits(r *run.Run) (least, most time.Duration) {
	for _, a := range actionsOf(r) {
		if a.Type != r.Acting.Type {
			continue
		}
		limit := cmp.Or(a.Limit, 24*time.Hour)
		if a.Type == run.ActionKillOld {
			limit = max(limit, r.Policy.CancelGrace+time.Minute)
		}
		if least == 0 || limit < least {
			least = limit
		}
		most = max(most, limit)
	}
	return least, most
}

// checkSkip checks that a skipped run never had a machine.
func (w *world) checkSkip(r *run.Run) {
	if !r.Skipped {
		return
	}
	if r.State != run.Completed || r.Attempt.Number > 0 || w.factsOf(r).machines > 0 {
		w.fail("%s was skipped in %s with attempt %d and %d machines", r.ID, r.State, r.Attempt.Number, w.factsOf(r).machines)
	}
	if len(r.Violations) == 0 && r.Missed == nil && r.Overflowed == nil {
		w.fail("%s was skipped without a reason", r.ID)
	}
}

// checkExpected checks that a run which takes longer than its job expects has that
// recorded a minute later.
func (w *world) checkExpected(r *run.Run) {
	if r.State != run.Running || r.Constraints == nil || r.Constraints.MaxExpectedRunTime == 0 || r.Cancel != nil || violated(r, run.MaxExpectedRunTime) {
		return
	}
	by := r.Attempt.StartedAt.Add(r.Constraints.MaxExpectedRunTime)
	if late := w.overdue(by, time.Minute, time.Minute+w.patience()); late > 0 {
		w.fail("%s runs longer than expected for %s without a record of that", r.ID, late+time.Minute)
	}
}

func violated(r *run.Run, name run.Constraint) bool {
	return slices.ContainsFunc(r.Violations, func(v run.ConstraintViolation) bool { return v.Constraint == name })
}

// checkActions compares the actions of an ended run with its events, the messages that
// arrived and the runs that were triggered.
func (w *world) checkActions(ctx context.Context, r *run.Run) {
	events, err := w.process.store.Events(ctx, r.Ref(), 0, 1000)
	if err != nil {
		w.fail("cannot read the events of %s: %v", r.ID, err)
	}
	exceeded, actedOnViolations, triggered := 0, 0, map[string]int{}
	done := map[string]run.EventType{}
	for _, e := range events {
		switch e.Type {
		case run.EventExpectedTimeExceeded:
			exceeded++
		case run.EventActionExecuted, run.EventActionFailed:
			reason, kind := reasonOf(e.Message)
			if strings.HasSuffix(e.Message, "does not apply after a run") {
				continue
			}
			switch {
			case reason == "":
				actedOnViolations++
			case done[reason] != "":
				w.fail("%s has two records of its action %s", r.ID, reason)
			default:
				done[reason] = e.Type
			}
			w.checkAction(r, reason, kind, e.Type, triggered)
		}
	}
	if exceeded > 1 || actedOnViolations > 1 {
		w.fail("%s: got %d events of an exceeded run time and %d of its action, want at most 1", r.ID, exceeded, actedOnViolations)
	}
	for _, reason := range endActions(r) {
		if done[reason] == "" {
			w.fail("%s ended as %s without its action %s", r.ID, r.State, reason)
		}
		delete(done, reason)
	}
	for _, reason := range slices.Sorted(maps.Keys(done)) {
		w.fail("%s ended as %s with the action %s", r.ID, r.State, reason)
	}
	for _, other := range w.records.ordered {
		if other.ParentRun == r.ID && other.RetryOf == "" {
			triggered[other.JobID]--
		}
	}
	for _, job := range slices.Sorted(maps.Keys(triggered)) {
		if missing := triggered[job]; missing != 0 {
			w.fail("%s triggered runs of %s: %d are missing", r.ID, job, missing)
		}
	}
}

// reasonOf returns the reason and the type of the action of an event; no reason is the
// action on the constraints before the run.
func reasonOf(message string) (reason string, kind run.ActionType) {
	first, rest, _ := strings.Cut(message, ": ")
	if slices.Contains(run.ActionTypes(), run.ActionType(first)) {
		return "", run.ActionType(first)
	}
	second, _, _ := strings.Cut(rest, ": ")
	return first, run.ActionType(second)
}

// checkAction compares the event of an action with what its receiver saw.
func (w *world) checkAction(r *run.Run, reason string, kind run.ActionType, event run.EventType, triggered map[string]int) {
	var action run.Action
	accepted, refused := 0, 0
	if reason == "" { // the message is about one of the violated constraints
		for _, v := range r.Violations {
			accepted += w.hooks.accepted[messageID(r, string(v.Constraint))]
			refused += w.hooks.refused[messageID(r, string(v.Constraint))]
		}
		action = violationAction(r)
	} else {
		action = endAction(r, reason)
		accepted, refused = w.hooks.accepted[messageID(r, reason)], w.hooks.refused[messageID(r, reason)]
	}
	switch executed := event == run.EventActionExecuted; {
	case kind == run.ActionWebhook && executed && accepted == 0:
		w.fail("%s has the executed webhook %s, and its receiver accepted none", r.ID, reason)
	case kind == run.ActionWebhook && !executed && refused == 0:
		w.fail("%s has the failed webhook %s, and its receiver refused none", r.ID, reason)
	case kind == run.ActionTriggerJob && executed:
		triggered[action.JobID]++
	}
}

// violationAction returns the action on the constraints that a run violated before it
// began: that of the first one with an action of its own, or else that for all.
func violationAction(r *run.Run) (action run.Action) {
	if r.Actions == nil {
		return action
	}
	for _, name := range []run.Constraint{run.MaxConcurrentRuns, run.RequirePreviousSuccess, run.CatchUpWindow, run.PreRunHook} {
		if own, has := r.Actions.Each[name]; has && violated(r, name) {
			return own
		}
	}
	if r.Actions.OnViolation != nil {
		action = *r.Actions.OnViolation
	}
	return action
}

// endAction returns the action of a run for the reason; it has no type without one.
func endAction(r *run.Run, reason string) (action run.Action) {
	actions := r.Actions
	if actions == nil {
		return action
	}
	found := actions.OnViolation
	switch own, has := actions.Each[run.Constraint(reason)]; {
	case reason == "onSuccess":
		found = actions.OnSuccess
	case reason == "onFailure":
		found = actions.OnFailure
	case reason == "onSkip":
		found = actions.OnSkip
	case has:
		found = &own
	}
	if found != nil {
		action = *found
	}
	return action
}

// endActions returns the reasons of the actions that follow the end of a run.
func endActions(r *run.Run) (reasons []string) {
	if r.State == run.Cancelled {
		return nil
	}
	candidates := []string{"onFailure"}
	switch {
	case r.Skipped:
		candidates = []string{"onSkip"}
	case r.State == run.Completed:
		candidates = []string{"onSuccess"}
	}
	for _, name := range []run.Constraint{run.MaxExpectedRunTime, run.MaxAllowedRunTime, run.PostRunHook} {
		if violated(r, name) {
			candidates = append(candidates, string(name))
		}
	}
	for _, reason := range candidates {
		if kind := endAction(r, reason).Type; kind == run.ActionWebhook || kind == run.ActionTriggerJob {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// actionsPending describes the actions of a run that are not carried out; empty if
// none is left.
func actionsPending(r *run.Run) string {
	for _, e := range r.Execution.Pending {
		if e.Kind == run.EffectAct {
			return fmt.Sprintf("the action %s", e.Action)
		}
	}
	return ""
}

// result is how a run of a job ended.
type result struct {
	at      time.Time
	success bool
}
