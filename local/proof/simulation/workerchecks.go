package simulation

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/machines"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// CheckCall implements machines.Checks. It checks the effect of a call against the worker contract.
func (w *world) CheckCall(p *machines.Worker, c machines.Call, reply machines.Answer, before, after run.Run, calledAt time.Time) {
	facts := w.Attempt(p.Task(), p.Attempt())
	if before.Attempt.Number != p.Attempt() && (reply.OK() || w.Time.Now.Equal(calledAt) && after.Version != before.Version) {
		w.Fail("%s of attempt %d of %s was accepted during attempt %d: got status %d", c.Route, p.Attempt(), p.Task(), before.Attempt.Number, reply.Status)
	}
	valid := w.Time.Now.Before(p.Envelope.Deadline) && w.Time.Now.Before(p.Envelope.TokenExpiresAt.Add(-w.Plan.Skew)) // an outage may last longer
	if reply.Status == http.StatusUnauthorized && valid && p.Healthy() && c.Token == p.Token && before.IsCurrent(p.Attempt()) && facts.Worker == p.Name {
		w.Fail("%s of %s: got 401 for a valid token: %s", c.Route, p.Name, reply.Text)
	}
	if !reply.OK() {
		return
	}
	// A repeated report gets the answer of the first one, from any worker, even if the first
	// was accepted while this call waited.
	if c.Route != "callback" && before.Attempt.Report == nil && !facts.Reported {
		if facts.Worker != "" && facts.Worker != p.Name {
			w.Fail("calls of %s and %s in attempt %d of %s were accepted, want one worker", facts.Worker, p.Name, p.Attempt(), p.Task())
		}
		facts.Worker = p.Name
	}
	switch c.Route {
	case "started":
		facts.LastCallAt = calledAt
		if before.Cancel != nil {
			w.Fail("started of %s was accepted after a cancel request for %s", p.Name, p.Task())
		}
	case "heartbeat":
		facts.LastCallAt = calledAt
		if facts.NoticedAt.IsZero() && strings.Contains(string(reply.Text), `"shouldCancel":true`) {
			facts.NoticedAt = w.Time.Now
		}
		if before.Cancel != nil && !strings.Contains(string(reply.Text), `"shouldCancel":true`) {
			w.Fail("heartbeat of %s: got no shouldCancel after a cancel request for %s", p.Name, p.Task())
		}
	default:
		w.checkCompletion(p, c, reply, before, after)
	}
}

// checkCompletion compares the answer to completed, or to a callback, with the
// record.
func (w *world) checkCompletion(p *machines.Worker, c machines.Call, reply machines.Answer, before, after run.Run) {
	if after.Attempt.Number != p.Attempt() {
		return // a later attempt has started during the call
	}
	if after.Attempt.Report == nil && after.Attempt.Outcome != run.OutcomeCancelled {
		w.Fail("acknowledged report of attempt %d of %s is lost", p.Attempt(), p.Task())
	}
	final := string(after.Attempt.Outcome)
	if c.Route == "completed" {
		var body contract.CompletedAnswer
		if err := json.Unmarshal(reply.Text, &body); err != nil || body.FinalState != final {
			w.Fail("completed of %s: got %s, and attempt %d of %s is %s", p.Name, reply.Text, p.Attempt(), p.Task(), final)
		}
	}
	if before.Cancel != nil && before.Attempt.Report == nil && final != contract.OutcomeCancelled {
		w.Fail("report after a cancel request for %s: got outcome %[3]s of attempt %[2]d, want CANCELLED", p.Task(), p.Attempt(), final)
	}
	if report := after.Attempt.Report; c.Outcome == contract.OutcomeCancelled && before.Attempt.Report == nil && report != nil && report.Phase == "" {
		w.Fail("cancelledDuringPhase of %s is lost", p.Name)
	}
	if c.Successful && final == contract.OutcomeSucceeded {
		w.Attempt(p.Task(), p.Attempt()).Succeeded = true
	}
}
