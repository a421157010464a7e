package simulation

import (
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/capacity"
	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// checkPrompt checks that no run waits longer than its limits allow.
func (w *world) checkPrompt() {
	for _, r := range w.Records.Ordered {
		w.checkExecution(r)
		if r.State.Terminal() {
			w.checkEndActions(r)
			continue
		}
		w.checkExpected(r)
		w.checkReplacing(r)
		w.checkWait(r)
		what, end, kind := w.limitOf(r)
		if late := w.Overdue(end, kind, kind+w.Patience()); late > 0 {
			w.Fail("%s waits %s too long for the end of %s", r.ID, late, what)
		}
		w.checkCancel(r)
		w.checkSilence(r)
		if m := w.Machines.ByID[r.Attempt.Machine.ID]; m != nil && !m.Alive() && r.IsCurrent(m.Spec.Owner.Attempt) {
			lost := m.EndedAt
			for _, hidden := range []time.Time{m.VisibleAt, r.Attempt.StartBy} { // until then a lookup does not prove that it is gone
				if hidden.After(lost) {
					lost = hidden
				}
			}
			if late := w.Overdue(lost, 2*w.Config.SweepInterval+w.Config.LaunchWait+5*time.Second, w.Patience()); late > 0 {
				w.Fail("%s is in %s %s after its machine was lost", r.ID, r.State, late)
			}
		}
	}
	w.checkIdle()
	w.checkIdleJobs()
}

// limitOf returns the limit that ends the state of a run, its time, and the maximum delay until
// its effect is visible in calm worlds.
func (w *world) limitOf(r *run.Run) (what string, end time.Time, kind time.Duration) {
	switch r.State {
	case run.Pending:
		if r.Slot.State == platform.SlotQueued || r.KeySlot.State == platform.SlotQueued {
			return "the queue timeout", w.queueEnd(r), 3 * time.Second
		}
		if r.Slot.State == platform.SlotHeld {
			return "its constraints", r.Slot.Since, harness.HookTime + 2*time.Second
		}
		return "its admission", r.EnteredAt, 2 * time.Second
	case run.PreRun:
		return "the time that it is for", r.ScheduledAt, 3 * time.Second
	case run.ConditionPending, run.ConditionRunning:
		return "its constraints", w.FactsOf(r).EnteredAt, harness.HookTime + 2*time.Second
	case run.ActionPending, run.ActionRunning:
		return w.actionLimitOf(r)
	case run.ContainerCreating:
		if r.Slot.State == platform.SlotQueued { // its start was throttled or deferred
			w.Attempt(r.TaskID, r.Attempt.Number).LongStart = true
			return "the queue timeout", w.queueEnd(r), 3 * time.Second
		}
		// A refused creation is retried after a delay.
		if w.Attempt(r.TaskID, r.Attempt.Number).LongStart || r.Attempt.StuckWarm > 0 {
			return "the delayed start limit", r.Attempt.StartBy, r.Policy.Retry.MaxDelay + w.Config.LaunchWait + 3*time.Second
		}
		end := r.Attempt.IntentAt.Add(w.permitDelay(r) + r.Policy.StartTimeout)
		if w.Calm() {
			return "the start limit", end, w.Config.LaunchWait + 3*time.Second
		}
		return "the start limit", end, w.Config.LaunchWait + r.Policy.Retry.MaxDelay
	case run.Running:
		return "the time limit", r.RunBy(), 3 * time.Second
	case run.Terminating:
		cleanup := w.Config.ExitWait + 2*w.Config.DestroyWait + 70*time.Second
		if w.Plan.Stuck+w.Plan.Invisible > 0 {
			cleanup += unreachable + 2*time.Minute
		}
		if r.Constraints != nil && r.Constraints.PostRunHook != nil {
			cleanup += harness.HookTime
		}
		begun := w.FactsOf(r).TerminatingAt
		if r.FallsBack() && r.Attempt.MaybeCreated && r.Attempt.StartBy.After(begun) {
			begun = r.Attempt.StartBy // the machine of an unanswered call may appear until then
		}
		if m := w.Machines.ByID[r.Attempt.Machine.ID]; m != nil && m.Erased && r.Attempt.StartBy.After(begun) {
			begun = r.Attempt.StartBy // until then the machine may be invisible
		}
		if r.Attempt.CreateBy.After(begun) {
			begun = r.Attempt.CreateBy // a create call may be in flight until then
		}
		return "the cleanup", begun, cleanup
	case run.Retrying:
		return "the delay", r.RetryAt, 3 * time.Second
	}
	return "", time.Time{}, 0
}

// permittedAhead limits the time between the grant of a slot and the permitted start.
const permittedAhead = 5 * time.Second

// permitDelay returns the time from the intent to the permitted start. The start limit counts
// from the permitted start.
func (w *world) permitDelay(r *run.Run) time.Duration {
	at := r.Attempt.StartAt
	if ahead := at.Sub(r.Slot.Since); !at.IsZero() && ahead > permittedAhead+2*w.Plan.Skew {
		w.Fail("%s is permitted to start %s after it got its slot", r.ID, ahead)
	}
	return max(at.Sub(r.Attempt.IntentAt), 0)
}

// queueEnd returns when the wait of a run in a queue ends. If a start is refused after the
// queue timeout, the run joins the queue at its old place and leaves it immediately.
func (w *world) queueEnd(r *run.Run) time.Time {
	facts := w.FactsOf(r)
	joined := facts.QueuedAt
	if r.AwaitsKey() {
		joined = facts.KeyQueuedAt
	}
	if by := r.QueueBy(); by.After(joined) {
		return by
	}
	return joined
}

// actionLimitOf is like limitOf for a run that acts on a violated constraint.
func (w *world) actionLimitOf(r *run.Run) (what string, end time.Time, kind time.Duration) {
	facts := w.FactsOf(r)
	switch {
	case r.Slot.State == platform.SlotQueued:
		return "the queue timeout", w.queueEnd(r), 3 * time.Second
	case r.Acting == nil || !r.Acting.Waits && !r.Acting.Done:
		since := facts.EnteredAt
		if facts.ActedAt.After(since) {
			since = facts.ActedAt
		}
		return "its action", since, 2*harness.HookTime + 2*time.Second
	}
	_, most := waitLimits(r)
	return "the wait of its action", facts.ActingAt.Add(most), harness.HookTime + 3*time.Second
}

// checkEndActions checks that the actions after the end of a run are carried out in time.
func (w *world) checkEndActions(r *run.Run) {
	pending := harness.ActionsPending(r)
	if pending == "" {
		return
	}
	bound := 4*harness.HookTime + 2*w.Config.SweepInterval + 2*time.Minute + w.noticeTime()
	if late := w.Overdue(w.FactsOf(r).EndedAt, bound, bound+w.Patience()); late > 0 {
		w.Fail("%s has ended, and %s is pending %s too long", r.ID, pending, late)
	}
}

// checkExecution checks that the execution of a run is in the state that its record requires.
func (w *world) checkExecution(r *run.Run) {
	name := executionOf(w.FactsOf(r), r)
	at := w.Positions[name]
	behind := ""
	switch {
	case at == nil && !r.State.Terminal():
		at = notStarted(w.FactsOf(r), r.Execution.Start)
		behind = "has not started"
	case at == nil:
		return
	case r.State.Terminal() && !at.Ended && tokenState(at.State) && !w.hasEnded(name):
		behind = "waits after the end of its run"
	case !r.State.Terminal() && !at.Ended && tokenState(at.State) && at.Generation > 0 && at.Generation != r.Wait.Generation:
		behind = "waits in an earlier state"
	}
	if behind == "" {
		at.BehindSince = time.Time{}
		return
	}
	if at.BehindSince.IsZero() {
		at.BehindSince = w.Time.Now
	}
	bound := time.Second
	if !w.Plan.Reliable() {
		bound = w.Patience()
	}
	if late := w.Overdue(at.BehindSince, bound, bound); late > 0 {
		w.Fail("the execution %s %s since %s: it is in %q, the run in %s", name, behind, at.BehindSince.Sub(harness.Start), at.State, r.State)
	}
	if !w.mayLoseExecutions() && at.Ended && !r.State.Terminal() {
		w.Fail("the execution of %s has ended in %s, and the run is in %s", r.ID, at.State, r.State)
	}
}

// mayLoseExecutions reports whether an execution can end before its run.
func (w *world) mayLoseExecutions() bool { return w.Plan.Unforeseen+w.Plan.Aborts > 0 }

// executionOf returns the name of the run's execution. It caches the name, which is slow to
// derive.
func executionOf(f *capacity.RunFacts, r *run.Run) string {
	if f.Name == "" || f.Named != r.Execution.Start {
		f.Name, f.Named = run.ExecutionName(r.Ref(), r.Execution.Start), r.Execution.Start
	}
	return f.Name
}

// notStarted returns the position of the run's execution with the start number, which has not
// started.
func notStarted(f *capacity.RunFacts, start int) *harness.Position {
	if f.MissingStart != start {
		f.Missing, f.MissingStart = harness.Position{}, start
	}
	return &f.Missing
}

func tokenState(state string) bool {
	switch run.Step(state) {
	case run.StepQueued, run.StepContainerCreating, run.StepRunning, run.StepCancelling, run.StepActionWaiting:
		return true
	}
	return false
}

// checkCancel checks that a cancel request reaches the worker within an interval and ends the
// run within the grace period.
func (w *world) checkCancel(r *run.Run) {
	if r.Cancel == nil || w.Plan.Stuck+w.Plan.Invisible > 0 {
		return
	}
	most := r.Policy.HeartbeatInterval + r.Policy.CancelGrace + w.Config.ExitWait + 2*w.Config.DestroyWait + 75*time.Second
	if w.Attempt(r.TaskID, r.Attempt.Number).LongStart {
		most += r.Policy.Retry.MaxDelay
	}
	if !r.Attempt.CreateBy.IsZero() { // Sortie waits for its machine
		most += 2 * time.Minute
	}
	if late := w.Overdue(r.Cancel.At, most, most+w.Patience()); late > 0 {
		w.Fail("cancel of %s takes %s longer than its grace", r.ID, late)
	}
}

// checkSilence checks that an attempt ends in time after its worker stopped calling.
func (w *world) checkSilence(r *run.Run) {
	of := w.Attempt(r.TaskID, r.Attempt.Number)
	if r.State != run.Running || r.EndRequest() != nil || of.Worker == "" || of.LastCallAt.IsZero() {
		return
	}
	limit := r.Policy.HeartbeatTimeout
	kind, mean := 2*limit+r.Policy.HeartbeatInterval+5*time.Second, 2*limit+w.Patience()
	if w.Plan.Skew > 0 { // by this clock, another host's contact seems late
		kind = mean
	}
	if late := w.Overdue(of.LastCallAt, kind, mean); late > 0 {
		w.Fail("no heartbeat timeout of %s of %s %s after the limit", of.Worker, r.ID, late)
	}
}

// checkIdle checks that no slot stays free while a run is queued.
func (w *world) checkIdle() {
	held, queued := 0, 0
	for _, r := range w.Records.Ordered {
		if r.Slot.Pool != w.Config.Pool && w.SeveralPools() {
			continue
		}
		switch r.PoolState() {
		case platform.SlotHeld:
			held++
		case platform.SlotQueued:
			queued++
		}
	}
	limit, _ := w.Limits()
	if queued == 0 || held >= limit || w.Draining() || w.Plan.Throttles+w.Ways.TooMany > 0 || w.Down(harness.Throttling) { // a throttled start is queued, too
		w.idleSince = time.Time{}
		return
	}
	if w.idleSince.IsZero() {
		w.idleSince = w.Time.Now
	}
	if late := w.Overdue(w.idleSince, time.Second, 2*time.Minute+20*w.Config.SweepInterval); late > 0 {
		w.Fail("%d runs are queued with %d of %d slots held", queued, held, limit)
	}
}

// checkMachines checks that no machine outlives its attempt by more than two sweeps and the
// delays of the platform.
func (w *world) checkMachines() {
	for _, m := range w.Machines.Live {
		if m.Idle() {
			continue
		}
		r, ok := w.Records.ByID[m.Spec.Owner.RunID]
		if ok && r.Attempt.Machine.ID == m.ID {
			m.Known = true
		}
		wanted := ok && r.IsCurrent(m.Spec.Owner.Attempt) && (!r.Attempt.Machine.Known() || r.Attempt.Machine.ID == m.ID)
		if wanted {
			m.UnwantedAt = time.Time{}
			continue
		}
		if m.UnwantedAt.IsZero() {
			m.UnwantedAt = w.Time.Now
		}
		if m.Phase == port.MachineEnding {
			continue
		}
		bound := 2*w.Config.SweepInterval + w.Config.ExitWait + w.Config.DestroyWait + 4*time.Minute
		if late := w.Overdue(m.UnwantedAt, bound, bound+w.Patience()); late > 0 {
			w.Fail("%s of attempt %d of %s runs %s after its attempt", m.ID, m.Spec.Owner.Attempt, m.Spec.Owner.RunID, late)
		}
	}
}
