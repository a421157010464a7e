package simulation

import (
	"context"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/local/proof/simulation/capacity"
	"github.com/sortie-dev/sortie/local/proof/simulation/machines"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// checkChange compares a record with its previous version. before is nil for a new run.
func (w *world) checkChange(before, r *run.Run) {
	facts := w.FactsOf(r)
	w.Throttled = w.Throttled || r.Attempt.Throttles > 0 && !r.Attempt.MaybeCreated || r.State == run.ContainerCreating && r.Slot.State == platform.SlotQueued
	if before != nil {
		w.checkOrder(before, r)
		w.checkAttempt(before, r)
	} else {
		w.CheckRoom(r)
	}
	noteWaits(facts, w.Time.Now, before, r)
	noteChange(facts, w.Time.Now, before, r)
	w.checkJobRun(before, r)
	w.CheckClaims(before, r)
	w.CheckReplica(before, r)
	w.CheckDetour(r)
	w.CheckHome(before, r)
	if r.State == run.Terminating && (before == nil || before.State != r.State) {
		facts.TerminatingAt = w.Time.Now
	}
	if r.Slot.State == platform.SlotHeld && (r.State.Terminal() || r.State == run.Retrying) {
		w.Fail("%s holds a slot in %s", r.ID, r.State)
	}
	if m := w.Machines.ByID[r.Attempt.Machine.ID]; r.Attempt.Machine.Known() && (m == nil || !m.Served(r) && !m.GaveUp(r)) {
		w.Fail("%s has machine %s in attempt %d, which is of another attempt", r.ID, r.Attempt.Machine.ID, r.Attempt.Number)
	}
	if generation, known := w.Tokens[r.Wait.Token]; known && generation != r.Wait.Generation {
		w.Fail("%s waits in generation %d with the token of generation %d", r.ID, r.Wait.Generation, generation)
	}
	if most := r.Policy.Retry.MaxAttempts + r.Policy.Retry.MaxFurtherStarts + w.uncounted(r) + len(facts.Steps); r.Attempt.Number > most {
		w.Fail("%s is in attempt %d, want at most %d", r.ID, r.Attempt.Number, most)
	}
	w.checkFault(r)
	w.checkAttemptInTime(r)
	if !r.State.Terminal() || before != nil && before.State.Terminal() {
		return
	}
	facts.EndedAt = w.Time.Now
	if w.Chance(w.Plan.Retries) {
		w.Time.After(w.UpTo(time.Minute), func() { w.retry(r.TaskID) })
	}
}

// uncounted returns how many attempts of the run do not count as attempts.
func (w *world) uncounted(r *run.Run) int {
	count := 0
	for n := range r.Attempt.Number {
		of := w.Attempt(r.TaskID, n+1)
		count += of.Strangers
		if of.Withdrawn && !w.Calm() {
			count++
		}
		if of.Evicted {
			count++
		}
	}
	return count
}

// noteWaits records when the run entered its state, its queues and its action.
func noteWaits(f *capacity.RunFacts, now time.Time, before, r *run.Run) {
	if r.Slot.State == platform.SlotQueued && (before == nil || before.Slot.State != platform.SlotQueued || capacity.Rejoined(before, r)) {
		f.QueuedAt = now
	}
	if r.JobSlot.State == platform.SlotQueued && (before == nil || before.JobSlot.State != platform.SlotQueued) {
		f.JobQueuedAt = now
	}
	if r.KeySlot.State == platform.SlotQueued && (before == nil || before.KeySlot.State != platform.SlotQueued) {
		f.KeyQueuedAt = now
	}
	if before == nil || before.State != r.State {
		f.EnteredAt = now
	}
	if r.Acting != nil && (before == nil || before.Acting == nil) {
		f.ActingAt = now
	}
}

// noteChange records the time of changes of a job's run.
func noteChange(f *capacity.RunFacts, now time.Time, before, r *run.Run) {
	if before == nil {
		f.CreatedAt = now
		before = &run.Run{}
	}
	if v, was := violation(r, spec.PreRunHook), violation(before, spec.PreRunHook); v != nil && (was == nil || !was.At.Equal(v.At)) {
		f.RefusedAt = now
	}
	if a, was := r.Acting, before.Acting; a != nil && (was == nil || a.Waits != was.Waits || a.Due != was.Due || a.Done != was.Done || a.Checks != was.Checks) {
		f.ActedAt = now
	}
	if contends(r) && !contends(before) {
		f.ContendsSince = now
	}
}

// checkOrder checks that a record never goes back.
func (w *world) checkOrder(before, r *run.Run) {
	if r.Version < before.Version || r.EventCount < before.EventCount || r.Attempt.Number < before.Attempt.Number || r.Execution.Start < before.Execution.Start {
		w.Fail("%s went back from version %d to %d", r.ID, before.Version, r.Version)
	}
	if before.State.Terminal() && r.State != before.State {
		w.Fail("terminal state of %s changed from %s to %s", r.ID, before.State, r.State)
	}
	if before.Cancel != nil && (r.Cancel == nil || *r.Cancel != *before.Cancel) {
		w.Fail("the cancel request of %s changed", r.ID)
	}
}

// checkAttempt checks that known facts of an attempt do not change, and that slots are granted
// in the order of the queue.
func (w *world) checkAttempt(before, r *run.Run) {
	if r.Slot.State == platform.SlotHeld && before.Slot.State != platform.SlotHeld {
		w.CheckGrant(before, r)
		w.CheckDrained(r)
		w.CheckLimit(r)
	}
	was, is := before.Attempt, r.Attempt
	if was.Number != is.Number {
		return
	}
	if is.Eviction != nil {
		w.CheckEviction(before, r)
	}
	for _, fact := range []struct {
		name    string
		changed bool
	}{
		{"intent", !was.IntentAt.Equal(is.IntentAt)},
		{"machine name", was.MachineName != is.MachineName},
		{"machine", was.Machine.Known() && was.Machine != is.Machine && !capacity.GaveUp(before, r)},
		{"start", !was.StartedAt.IsZero() && !was.StartedAt.Equal(is.StartedAt)},
		{"worker", was.WorkerID != "" && was.WorkerID != is.WorkerID},
		{"delivery of the cancel request", !was.CancelDeliveredAt.IsZero() && !was.CancelDeliveredAt.Equal(is.CancelDeliveredAt)},
		{"SIGTERM", !was.SigtermAt.IsZero() && !was.SigtermAt.Equal(is.SigtermAt)},
		{"grace", !was.GraceUntil.IsZero() && !was.GraceUntil.Equal(is.GraceUntil)},
		{"outcome", was.Outcome != "" && was.Outcome != is.Outcome && r.Cancel == nil}, // the worker's exit may be seen late
		{"report", was.Report != nil && (is.Report == nil || is.Report.Digest != was.Report.Digest)},
	} {
		if fact.changed {
			w.Fail("the %s of attempt %d of %s changed", fact.name, is.Number, r.ID)
		}
	}
}

// checkFault checks that a limit is not applied early.
func (w *world) checkFault(r *run.Run) {
	of := w.Attempt(r.TaskID, r.Attempt.Number)
	if r.Fault == nil || of.FaultChecked || r.Attempt.EndedAt.IsZero() && r.Fault.Code != fault.QueueTimeout && r.Fault.Code != fault.ActionTimeout && r.Fault.Code != fault.DeadlineExceeded {
		return
	}
	of.FaultChecked = true
	early := func(limit, lasted time.Duration) {
		if lasted+2*w.Plan.Skew+time.Second < limit {
			w.Fail("%s of attempt %d of %s after %s, want %s", r.Fault.Code, r.Attempt.Number, r.ID, lasted, limit)
		}
	}
	machine := w.Machines.ByID[r.Attempt.Machine.ID]
	switch r.Fault.Code {
	case fault.HeartbeatTimeout:
		w.checkHeartbeatTimeout(r, of)
	case fault.RunTimeout:
		began, most := r.Attempt.StartedAt, r.Policy.TimeLimit
		if report := r.Attempt.Report; report != nil && report.Category == fault.Timeout {
			// A worker counts from the start of its process, whose calls can be lost. It stops
			// its program earlier, so that it can still report.
			began, most = r.Attempt.IntentAt, most-limit.ReportMargin(most)
		}
		early(most, r.Attempt.EndedAt.Sub(began))
	case fault.DeadlineExceeded:
		w.checkRunDeadline(r)
	case fault.QueueTimeout:
		early(r.Policy.QueueTimeout, w.Time.Now.Sub(r.CreatedAt))
	case fault.ActionTimeout:
		w.checkActionTimeout(r, early)
	case fault.StartTimeout:
		if machine == nil || machine.Alive() {
			early(r.Policy.StartTimeout, r.Attempt.EndedAt.Sub(r.Attempt.IntentAt))
		}
	case fault.CancelTimeout:
		if !of.NoticedAt.IsZero() && w.Calm() && of.Strangers == 0 { // a stranger kills without a grace period
			early(min(r.Policy.CancelGrace, r.RunBy().Sub(of.NoticedAt)), w.Time.Now.Sub(of.NoticedAt))
		}
	case fault.WorkerLost, fault.OutOfMemory, fault.MachineStopped:
		if machine != nil && machine.Alive() {
			w.Fail("%s of attempt %d of %s while machine %s is %s", r.Fault.Code, r.Attempt.Number, r.ID, machine.ID, machine.Phase)
		}
	}
}

// checkHeartbeatTimeout checks that no attempt times out whose worker called within the limit,
// or could not call because of an outage.
func (w *world) checkHeartbeatTimeout(r *run.Run, of *machines.AttemptFacts) {
	limit := r.Policy.HeartbeatTimeout - 2*w.Plan.Skew
	if silence := w.Time.Now.Sub(of.LastCallAt); silence < limit {
		w.Fail("heartbeat timeout of %s of %s %s after its last call", r.Attempt.WorkerID, r.ID, silence)
	}
	if since := w.Time.Now.Sub(w.NoticedUpSince); since < limit {
		w.Fail("heartbeat timeout of %s of %s %s after an outage", r.Attempt.WorkerID, r.ID, since)
	}
	for _, p := range w.workersOf(r) {
		// A worker whose calls are lost, or take most of the limit, counts as silent. So does
		// one that repeatedly finds no process in worlds where processes crash every few
		// seconds.
		if limit > 0 && p.Refused < 3 && p.Name == r.Attempt.WorkerID && p.Healthy() && w.Plan.LostCalls == 0 && (w.Plan.SlowCommits+w.Plan.LostCommits == 0 || limit > 2*time.Minute) {
			w.Fail("heartbeat timeout of %s of %s, which sends heartbeats", p.Name, r.ID)
		}
	}
}

// workersOf returns the workers on a run's recorded machine.
func (w *world) workersOf(r *run.Run) []*machines.Worker {
	if m := w.Machines.ByID[r.Attempt.Machine.ID]; m != nil {
		return m.Workers
	}
	return nil
}

// HeartbeatTimeout implements harness.Watch. It checks that the heartbeat clock of a state does not expire while its worker
// sends heartbeats.
func (w *world) HeartbeatTimeout(ref run.Ref) {
	r := w.Records.ByID[ref.ID]
	if r == nil || !w.Calm() || r.State != run.Running || r.Attempt.HeartbeatExempt {
		return
	}
	for _, p := range w.workersOf(r) {
		if p.Name == r.Attempt.WorkerID && p.Healthy() && p.Beating {
			w.Fail("the execution of %s times out while %s sends heartbeats", r.ID, p.Name)
		}
	}
}

// CheckLaunch implements machines.Checks. It checks that a machine is created once per attempt, and only when the machine of
// the previous attempt is gone or has been unreachable for ten minutes.
func (w *world) CheckLaunch(m *machines.Machine) {
	if r := w.Records.ByID[m.Spec.Owner.RunID]; r != nil {
		w.FactsOf(r).Machines++
	}
	facts := w.Attempt(m.Spec.Env["TASK_ID"], m.Spec.Owner.Attempt)
	if facts.Machines++; facts.Machines > 1+w.GivenUp(m.Spec.Owner) && w.Calm() && facts.Strangers == 0 {
		w.Fail("attempt %d of %s gets %d machines", m.Spec.Owner.Attempt, m.Spec.Owner.RunID, facts.Machines)
	}
	w.CheckFallback(m)
	for _, other := range w.Machines.Live {
		if other.Spec.Owner.RunID != m.Spec.Owner.RunID || other.Spec.Owner.Attempt >= m.Spec.Owner.Attempt || !other.Known {
			continue
		}
		if since := w.Time.Now.Sub(other.UnwantedAt); other.UnwantedAt.IsZero() || since+2*w.Plan.Skew+time.Second < unreachable {
			w.Fail("%s of attempt %d of %s is created while %s of attempt %d is %s", m.ID, m.Spec.Owner.Attempt, m.Spec.Owner.RunID, other.ID, other.Spec.Owner.Attempt, other.Phase)
		}
	}
}

// unreachable is the delay of the next attempt after a machine that cannot be confirmed gone.
const unreachable = 10 * time.Minute

// CheckDestroy implements machines.Checks. It checks that no machine is destroyed while its run needs it.
func (w *world) CheckDestroy(m *machines.Machine) {
	if m.Idle() {
		w.CheckDestroyIdle(m)
		return
	}
	w.CheckEndsRecord(m)
	var r run.Run
	var err error
	w.Observe(func() {
		r, err = w.Process.Store.Load(context.Background(), run.Ref{Tenant: m.Spec.Owner.Tenant, ID: m.Spec.Owner.RunID})
	})
	if err == nil && r.IsCurrent(m.Spec.Owner.Attempt) && (r.Attempt.Machine.ID == m.ID || !r.Attempt.Machine.Known()) && !w.MayGiveUp(r, m) {
		w.Fail("machine %s is destroyed, and attempt %d of %s needs it", m.ID, m.Spec.Owner.Attempt, r.ID)
	}
}

// CheckKill implements machines.Checks. It checks that a worker is not killed before the end of its grace period.
func (w *world) CheckKill(m *machines.Machine) {
	r := w.Records.ByID[m.Spec.Owner.RunID]
	facts := w.Attempt(m.Spec.Env["TASK_ID"], m.Spec.Owner.Attempt)
	if !w.Calm() || !m.Alive() || r == nil || r.EndRequest() == nil || facts.Strangers > 0 || !r.IsCurrent(m.Spec.Owner.Attempt) {
		return
	}
	if grace := w.Time.Now.Sub(facts.NoticedAt); m.Phase == port.MachineRunning && grace+2*w.Plan.Skew+2*time.Second < r.Policy.CancelGrace {
		w.Fail("%s of %s is killed %s after it learned of the cancel request, want %s", m.ID, r.ID, grace, r.Policy.CancelGrace)
	}
}

// CheckSecrets implements machines.Checks. It checks that no machine receives a token of the state machine.
func (w *world) CheckSecrets(spec port.LaunchSpec) {
	for _, r := range w.Records.Ordered {
		for name, value := range spec.Env {
			if r.Wait.Token != "" && strings.Contains(value, r.Wait.Token) {
				w.Fail("machine of %s has a task token in %s", spec.Owner.RunID, name)
			}
		}
	}
}

// CheckDeadline implements machines.Checks. It checks that a worker that obeys the envelope's deadline gets its whole time
// limit.
func (w *world) CheckDeadline(p *machines.Worker) {
	r, known := w.Record(p.Task())
	if !known || !r.IsCurrent(p.Attempt()) || r.State != run.Running {
		return
	}
	if !w.Calm() && p.Envelope.Deadline.Before(r.Deadline().Add(-2*w.Plan.Skew)) {
		return // the late refusal of an earlier call has extended the start limit
	}
	if by := r.EndBy(); !by.IsZero() && !p.Envelope.Deadline.Before(by) {
		return // the deadline of the run is earlier
	}
	late := max(r.Attempt.StartedAt.Sub(r.Attempt.StartBy), 0) // the start was not seen before its limit
	if left := p.Envelope.Deadline.Sub(r.Attempt.StartedAt); left+late+2*w.Plan.Skew+2*time.Second < r.Policy.TimeLimit {
		w.Fail("the envelope of %s leaves %s, want the time limit of %s", p.Name, left, r.Policy.TimeLimit)
	}
}
