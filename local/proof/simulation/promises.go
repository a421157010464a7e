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

// checkStep holds a record to what it was before the last step.
func (w *world) checkStep(r *run.Run) {
	before, known := w.last[r.ID]
	if before == r {
		return // it was not written since
	}
	w.last[r.ID] = r
	if known && (r.Version < before.Version || r.EventCount < before.EventCount || r.Attempt.Number < before.Attempt.Number) {
		w.broken("%s went back from version %d to %d", r.ID, before.Version, r.Version)
	}
	if known && before.State.Terminal() && r.State != before.State {
		w.broken("%s had ended as %s and is %s", r.ID, before.State, r.State)
	}
	if !r.State.Terminal() || known && before.State.Terminal() {
		return
	}
	w.endedAt[r.ID] = w.time.now
	if w.chance(w.plan.again) {
		w.time.after(w.upTo(time.Minute), func() { w.again(r.TaskID) })
	}
}

// checkVerdict holds an attempt to what was heard of its worker: nobody is
// declared dead who was heard within the limit, or could not be, and who is
// silent is declared dead in time.
func (w *world) checkVerdict(r *run.Run) {
	of := w.facts(r.TaskID, r.Attempt.Number)
	if r.State == run.Running && r.Cancel == nil && of.heard != "" && w.plan.kind() && w.plan.slowCommits == 0 {
		late := w.time.now.Sub(of.at) - (w.blocked - of.blocked) - r.Policy.HeartbeatTimeout
		if late > r.Policy.HeartbeatInterval/2 {
			w.broken("%s of %s was not heard, and no verdict was given for %s after the limit", of.heard, r.ID, late)
		}
	}
	if r.Attempt.Outcome == "" || r.Fault == nil || r.Fault.Code != fault.HeartbeatTimeout || of.judged {
		return
	}
	of.judged = true
	if silence := r.Attempt.EndedAt.Sub(of.at); silence < r.Policy.HeartbeatTimeout {
		w.broken("%s of %s was heard %s before it was declared dead", r.Attempt.WorkerID, r.ID, silence)
	}
	if since := r.Attempt.EndedAt.Sub(w.heardSince); since < r.Policy.HeartbeatTimeout {
		w.broken("%s of %s was declared dead %s after an outage of ours", r.Attempt.WorkerID, r.ID, since)
	}
	for _, m := range w.machines.byID {
		for _, p := range m.workers {
			if p.name == r.Attempt.WorkerID && p.awake() {
				w.broken("%s of %s beats, and was declared dead", p.name, r.ID)
			}
		}
	}
}

// checkCancel holds a cancel to its pace: the worker is told within an interval,
// and gone within the grace.
func (w *world) checkCancel(r *run.Run) {
	if r.Cancel == nil || r.State.Terminal() || w.plan.stuck > 0 {
		return
	}
	of := w.facts(r.TaskID, r.Attempt.Number)
	if of.cancelBlocked == 0 {
		of.cancelBlocked = w.blocked + 1
	}
	took := w.time.now.Sub(r.Cancel.At) - (w.blocked - of.cancelBlocked)
	if most := r.Policy.HeartbeatInterval + r.Policy.CancelGrace + clearMost; took > most {
		w.broken("the cancel of %s takes %s", r.ID, took)
	}
}

// checkWord holds a run's end to what was acknowledged on its way there.
func (w *world) checkWord(r *run.Run) {
	stood, wished := w.cancelled[r.TaskID]
	switch {
	case !wished:
	case stood.Terminal() && r.State != stood:
		w.broken("the cancel of %s was answered with %s, and it ended as %s", r.ID, stood, r.State)
	case stood.Terminal(), r.State == run.Cancelled, r.State == run.Orphaned:
	case r.State == run.Failed && r.Fault.Code == fault.CancelTimeout:
	default:
		w.broken("the cancel of %s was acknowledged, and it ended as %s: %v", r.ID, r.State, r.Fault)
	}
	for n := 1; n <= r.Attempt.Number; n++ {
		if of := w.facts(r.TaskID, n); !of.good || of.bad || r.Cancel != nil || r.State == run.Orphaned {
			continue
		}
		if r.State != run.Completed || r.Attempt.Number != n {
			w.broken("attempt %d of %s was told %s, and the run ended as %s in attempt %d: %v",
				n, r.ID, contract.OutcomeSucceeded, r.State, r.Attempt.Number, r.Fault)
		}
	}
}

// checkSecrets: no machine gets the token of a state of the state machine.
func (w *world) checkSecrets(spec port.LaunchSpec) {
	if w.process.dead {
		return
	}
	for _, r := range w.records(context.Background()) {
		for name, value := range spec.Env {
			if r.Wait.Token != "" && strings.Contains(value, r.Wait.Token) {
				w.broken("a machine of %s has a task token in %s", spec.Owner.RunID, name)
			}
		}
	}
}
