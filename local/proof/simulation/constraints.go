package simulation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// maxLineage limits the number of jobs that trigger one another in sequence.
const maxLineage = 8

// checkJobRun compares the record of a job's run with its previous version. before is nil for a
// new run.
func (w *world) checkJobRun(before, r *run.Run) {
	if r.JobID == "" {
		return
	}
	w.CheckKey(before, r)
	if before == nil {
		w.checkLineage(r)
	} else {
		w.checkDefinition(before, r)
		if r.JobSlot.State == platform.SlotHeld && before.JobSlot.State != platform.SlotHeld {
			w.checkJobGrant(before, r)
		}
		if admitted(r) && !admitted(before) {
			w.checkAdmitted(r)
		}
	}
	w.checkRefused(before, r)
	if r.Cancel != nil && (before == nil || before.Cancel == nil) {
		w.checkReplaced(r)
	}
	if r.State.Terminal() && (before == nil || !before.State.Terminal()) {
		w.checkSkip(r)
	}
}

// admitted reports whether the constraints of a run are met, or ignored by its action.
func admitted(r *run.Run) bool {
	return r.Attempt.Number > 0 || r.Acting != nil && r.Acting.Done && r.State == run.ActionRunning
}

// checkAdmitted checks that no constraint refuses a run that starts. The actions webhook and
// trigger_job let a run start despite a violation.
func (w *world) checkAdmitted(r *run.Run) {
	c := r.Constraints
	if c == nil || passes(r) {
		return
	}
	facts := w.FactsOf(r)
	facts.AdmittedAt = w.Time.Now
	if _, most := w.limitsOf(r); most > 0 && r.JobSlot.State != platform.SlotHeld && !r.State.Terminal() {
		w.Fail("%s is to start without a slot of its job", r.ID)
	}
	if late := w.Time.Now.Sub(r.ScheduledAt); c.CatchUpWindow > 0 && !r.ScheduledAt.IsZero() && r.Trigger != run.TriggerBackfill && late > c.CatchUpWindow+2*w.Plan.Skew+w.limitSlack() {
		w.Fail("%s is to start %s late, want at most %s", r.ID, late, c.CatchUpWindow)
	}
	if c.PreRunHook != nil {
		w.checkAllowed(r)
	}
	if c.RequirePreviousSuccess {
		w.checkPrevious(r)
	}
}

// checkAllowed checks that the hook before a run has allowed it after its last refusal. An
// unreachable hook counts as an answer if it may be unavailable.
func (w *world) checkAllowed(r *run.Run) {
	facts := w.FactsOf(r)
	answered := w.Hooks.AllowedAt[r.ID]
	if r.Constraints.PreRunHook.AllowUnavailable && w.Hooks.AwayAt[r.ID].After(answered) {
		answered = w.Hooks.AwayAt[r.ID]
	}
	if answered.IsZero() || answered.Before(facts.RefusedAt) {
		w.Fail("%s is to start after its hook refused it at %s", r.ID, facts.RefusedAt.Sub(harness.Start))
	}
}

// lookedPast reports whether requirePreviousSuccess ignores a run, because it was skipped or
// replaced by a newer one.
func lookedPast(r *run.Run) bool {
	return r.Skipped || r.State == run.Cancelled && r.Cancel != nil && strings.HasPrefix(r.Cancel.By, "job:")
}

// checkPrevious checks that a run with requirePreviousSuccess starts only after the previous
// run has succeeded. The check may miss a run that was created a moment before and had not
// ended, and a result that is cleared at the same time.
func (w *world) checkPrevious(r *run.Run) {
	m := w.jobs[r.JobID]
	if m == nil || m.deleted || m.record == nil {
		return
	}
	var previous *run.Run
	for _, other := range w.Records.Ordered {
		facts, slack := w.FactsOf(other), w.limitSlack()
		under := !other.State.Terminal() || other.State != run.Completed && w.Time.Now.Sub(facts.EndedAt) < slack
		missed := under && w.Time.Now.Sub(facts.CreatedAt) < slack+w.Lag
		if other.JobID == r.JobID && older(other, r) && !lookedPast(other) && !missed && (previous == nil || older(previous, other)) {
			previous = other
		}
	}
	if previous == nil || previous.State == run.Completed || !m.clearedAt.IsZero() && !w.FactsOf(previous).EndedAt.After(m.clearedAt) {
		return
	}
	w.Fail("%s is to start, and the previous run %s is %s", r.ID, previous.ID, previous.State)
}

// checkLineage checks that jobs do not trigger one another in a circle or without a limit.
func (w *world) checkLineage(r *run.Run) {
	triggered := len(r.Lineage)
	if r.Graph != nil {
		triggered -= r.Graph.Depth
	}
	if r.Child != nil {
		triggered--
	}
	if triggered >= maxLineage || r.Child == nil && slices.Contains(r.Lineage, r.JobID) {
		w.Fail("%s has the lineage %v, want fewer than %d other jobs", r.ID, r.Lineage, maxLineage)
	}
	parent := w.Records.ByID[r.ParentRun]
	if r.ParentRun == "" {
		return
	}
	if parent == nil || !slices.Equal(r.Lineage, append(slices.Clone(parent.Lineage), parent.JobID)) {
		w.Fail("%s has the lineage %v, which is not that of its parent %q", r.ID, r.Lineage, r.ParentRun)
	}
}

// checkDefinition checks that a run adopts a changed definition when it leaves PreRun, and
// never later.
func (w *world) checkDefinition(before, r *run.Run) {
	if before.State != run.PreRun && r.JobVersion != before.JobVersion {
		w.Fail("%s changed from version %d of its job to %d in %s", r.ID, before.JobVersion, r.JobVersion, before.State)
	}
	m := w.jobs[r.JobID]
	if before.State != run.PreRun || r.State == run.PreRun || r.State == run.Cancelled || m == nil || m.record == nil || !w.Calm() || m.deleted {
		return
	}
	if r.JobVersion != m.record.Version {
		w.Fail("%s left PreRun with version %d of its job, want %d", r.ID, r.JobVersion, m.record.Version)
	}
}

// actionsOf returns the actions of a run on violated constraints.
func actionsOf(r *run.Run) (actions []spec.Action) {
	if r.Actions == nil {
		return nil
	}
	if r.Actions.OnViolation != nil {
		actions = append(actions, *r.Actions.OnViolation)
	}
	for _, name := range spec.ConstraintNames() {
		if own, ok := r.Actions.Each[name]; ok {
			actions = append(actions, own)
		}
	}
	return actions
}

// waitLimits returns the limits of the action's wait. They are the least and the greatest limit
// of the run's actions of that type, because only one of these actions decides.
func waitLimits(r *run.Run) (least, most time.Duration) {
	for _, a := range actionsOf(r) {
		if a.Type != r.Acting.Type {
			continue
		}
		limit := cmp.Or(a.Limit, 24*time.Hour)
		if a.Type == spec.ActionKillOld {
			limit = max(limit, r.Policy.CancelGrace+time.Minute)
		}
		if least == 0 || limit < least {
			least = limit
		}
		most = max(most, limit)
	}
	return least, most
}

// checkWait checks that a run waits only while it can still start, and that it checks its
// constraints only as often as its action allows.
func (w *world) checkWait(r *run.Run) {
	if r.State != run.ActionRunning || r.Acting == nil || r.Acting.Done || passes(r) || r.Acting.Type == spec.ActionSkip {
		return
	}
	if c := r.Constraints; c.CatchUpWindow > 0 && !r.ScheduledAt.IsZero() && r.Trigger != run.TriggerBackfill {
		end := r.ScheduledAt.Add(c.CatchUpWindow)
		if at := w.FactsOf(r).ActingAt; at.After(end) {
			end = at
		}
		if late := w.Overdue(end, 2*harness.HookTime+5*time.Second, harness.HookTime+w.Patience()); late > 0 {
			w.Fail("%s waits, and is too late since %s", r.ID, late)
		}
	}
	most := 0
	for _, a := range actionsOf(r) {
		if a.Type != spec.ActionRetryLater || a.MaxRetries == 0 {
			return
		}
		most = max(most, a.MaxRetries)
	}
	if most > 0 && r.Acting.Checks > most {
		w.Fail("%s has checked its constraints %d more times, want at most %d", r.ID, r.Acting.Checks, most)
	}
}

// checkActionTimeout checks that a wait ends at its limit. It may end earlier if the run can no
// longer start, or after the last check.
func (w *world) checkActionTimeout(r *run.Run, early func(limit, lasted time.Duration)) {
	for _, a := range actionsOf(r) {
		if a.Type == spec.ActionRetryLater && r.Acting.Type == a.Type && a.MaxRetries > 0 && r.Acting.Checks >= a.MaxRetries {
			return
		}
	}
	if violated(r, spec.CatchUpWindow) {
		early(r.Constraints.CatchUpWindow, r.EndedAt.Sub(r.ScheduledAt))
		return
	}
	least, _ := waitLimits(r)
	early(least, r.EndedAt.Sub(r.Acting.At))
}

// checkSkip checks that a skipped run never had a machine.
func (w *world) checkSkip(r *run.Run) {
	if !r.Skipped {
		return
	}
	if r.State != run.Completed || r.Attempt.Number > 0 || w.FactsOf(r).Machines > 0 {
		w.Fail("%s was skipped in %s with attempt %d and %d machines", r.ID, r.State, r.Attempt.Number, w.FactsOf(r).Machines)
	}
	if len(r.Violations) == 0 && r.Missed == nil && r.Overflowed == nil {
		w.Fail("%s was skipped without a reason", r.ID)
	}
}

// checkExpected checks that a run that exceeds the expected time of its job has a record of
// that a minute later.
func (w *world) checkExpected(r *run.Run) {
	if r.State != run.Running || r.Constraints == nil || r.Constraints.MaxExpectedRunTime == 0 || r.Cancel != nil || violated(r, spec.MaxExpectedRunTime) {
		return
	}
	by := r.Attempt.StartedAt.Add(r.Constraints.MaxExpectedRunTime)
	if late := w.Overdue(by, time.Minute, time.Minute+w.Patience()); late > 0 {
		w.Fail("%s runs longer than expected for %s without a record of that", r.ID, late+time.Minute)
	}
}

func violated(r *run.Run, name spec.Constraint) bool { return violation(r, name) != nil }

// violation returns the violation of a constraint, or nil.
func violation(r *run.Run, name spec.Constraint) *spec.ConstraintViolation {
	for i := range r.Violations {
		if r.Violations[i].Constraint == name {
			return &r.Violations[i]
		}
	}
	return nil
}
