package simulation

import (
	"context"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// checkStep compares a record with its previous version.
func (w *world) checkStep(r *run.Run) {
	before, known := w.last[r.ID]
	if before == r {
		return // unchanged
	}
	w.last[r.ID] = r
	if known && (r.Version < before.Version || r.EventCount < before.EventCount || r.Attempt.Number < before.Attempt.Number) {
		w.fail("%s went back from version %d to %d", r.ID, before.Version, r.Version)
	}
	if known && before.State.Terminal() && r.State != before.State {
		w.fail("terminal state of %s changed from %s to %s", r.ID, before.State, r.State)
	}
	if !r.State.Terminal() || known && before.State.Terminal() {
		return
	}
	w.endedAt[r.ID] = w.time.now
	if w.chance(w.plan.retries) {
		w.time.after(w.upTo(time.Minute), func() { w.retry(r.TaskID) })
	}
}

// checkHeartbeatTimeout checks that an attempt times out in time after its
// worker stops calling, and not if its worker has called within the limit or
// could not call because of an outage.
func (w *world) checkHeartbeatTimeout(r *run.Run) {
	of := w.attempt(r.TaskID, r.Attempt.Number)
	if r.State == run.Running && r.Cancel == nil && of.worker != "" && w.plan.reliable() && w.plan.slowCommits == 0 {
		late := w.time.now.Sub(of.lastCallAt) - (w.blocked - of.blocked) - r.Policy.HeartbeatTimeout
		if late > r.Policy.HeartbeatInterval/2 {
			w.fail("no heartbeat timeout of %s of %s %s after the limit", of.worker, r.ID, late)
		}
	}
	if r.Attempt.Outcome == "" || r.Fault == nil || r.Fault.Code != fault.HeartbeatTimeout || of.timedOut {
		return
	}
	of.timedOut = true
	if silence := r.Attempt.EndedAt.Sub(of.lastCallAt); silence < r.Policy.HeartbeatTimeout {
		w.fail("heartbeat timeout of %s of %s %s after its last call", r.Attempt.WorkerID, r.ID, silence)
	}
	if since := r.Attempt.EndedAt.Sub(w.noticedUpSince); since < r.Policy.HeartbeatTimeout {
		w.fail("heartbeat timeout of %s of %s %s after an outage", r.Attempt.WorkerID, r.ID, since)
	}
	for _, m := range w.machines.byID {
		for _, p := range m.workers {
			if p.name == r.Attempt.WorkerID && p.healthy() {
				w.fail("heartbeat timeout of %s of %s, which sends heartbeats", p.name, r.ID)
			}
		}
	}
}

// checkCancel checks that a cancel request reaches the worker within an
// interval and ends the run within the grace.
func (w *world) checkCancel(r *run.Run) {
	if r.Cancel == nil || r.State.Terminal() || w.plan.stuck > 0 {
		return
	}
	of := w.attempt(r.TaskID, r.Attempt.Number)
	if of.cancelBlocked == 0 {
		of.cancelBlocked = w.blocked + 1
	}
	took := w.time.now.Sub(r.Cancel.At) - (w.blocked - of.cancelBlocked)
	if most := r.Policy.HeartbeatInterval + r.Policy.CancelGrace + maxCleanup; took > most {
		w.fail("cancel of %s takes %s", r.ID, took)
	}
}

// checkOutcome compares a run's final state with the acknowledged cancel
// requests and reports.
func (w *world) checkOutcome(r *run.Run) {
	stateAtCancel, requested := w.cancelled[r.TaskID]
	switch {
	case !requested:
	case stateAtCancel.Terminal() && r.State != stateAtCancel:
		w.fail("cancel of %s was answered with %s, and the run ended as %s", r.ID, stateAtCancel, r.State)
	case stateAtCancel.Terminal(), r.State == run.Cancelled, r.State == run.Orphaned:
	case r.State == run.Failed && r.Fault.Code == fault.CancelTimeout:
	case r.State == run.Completed && stateAtCancel == run.Terminating: // its success was committed first
	default:
		w.fail("cancel of %s was acknowledged, and the run ended as %s: %v", r.ID, r.State, r.Fault)
	}
	for n := 1; n <= r.Attempt.Number; n++ {
		if of := w.attempt(r.TaskID, n); !of.succeeded || of.defectiveOutput || r.State == run.Orphaned {
			continue
		}
		if r.State != run.Completed || r.Attempt.Number != n {
			w.fail("attempt %d of %s was acknowledged as %s, and the run ended as %s in attempt %d: %v",
				n, r.ID, contract.OutcomeSucceeded, r.State, r.Attempt.Number, r.Fault)
		}
	}
}

// checkSecrets checks that no machine receives a token of the state machine.
func (w *world) checkSecrets(spec port.LaunchSpec) {
	if w.process.crashed {
		return
	}
	for _, r := range w.records(context.Background()) {
		for name, value := range spec.Env {
			if r.Wait.Token != "" && strings.Contains(value, r.Wait.Token) {
				w.fail("machine of %s has a task token in %s", spec.Owner.RunID, name)
			}
		}
	}
}
