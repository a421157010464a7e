package simulation

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// CheckCall implements checks. It checks the effect of a call against the worker contract.
func (w *world) CheckCall(p *worker, c call, reply answer, before, after run.Run, calledAt time.Time) {
	facts := w.attempt(p.task(), p.attempt())
	if before.Attempt.Number != p.attempt() && (reply.ok() || w.Time.Now.Equal(calledAt) && after.Version != before.Version) {
		w.Fail("%s of attempt %d of %s was accepted during attempt %d: got status %d", c.route, p.attempt(), p.task(), before.Attempt.Number, reply.status)
	}
	valid := w.Time.Now.Before(p.envelope.Deadline) && w.Time.Now.Before(p.envelope.TokenExpiresAt.Add(-w.Plan.Skew)) // an outage may last longer
	if reply.status == http.StatusUnauthorized && valid && p.healthy() && c.token == p.token && before.IsCurrent(p.attempt()) && facts.worker == p.name {
		w.Fail("%s of %s: got 401 for a valid token: %s", c.route, p.name, reply.text)
	}
	if !reply.ok() {
		return
	}
	// A repeated report gets the answer of the first one, from any worker, even if the first
	// was accepted while this call waited.
	if c.route != "callback" && before.Attempt.Report == nil && !facts.reported {
		if facts.worker != "" && facts.worker != p.name {
			w.Fail("calls of %s and %s in attempt %d of %s were accepted, want one worker", facts.worker, p.name, p.attempt(), p.task())
		}
		facts.worker = p.name
	}
	switch c.route {
	case "started":
		facts.lastCallAt = calledAt
		if before.Cancel != nil {
			w.Fail("started of %s was accepted after a cancel request for %s", p.name, p.task())
		}
	case "heartbeat":
		facts.lastCallAt = calledAt
		if facts.noticedAt.IsZero() && strings.Contains(string(reply.text), `"shouldCancel":true`) {
			facts.noticedAt = w.Time.Now
		}
		if before.Cancel != nil && !strings.Contains(string(reply.text), `"shouldCancel":true`) {
			w.Fail("heartbeat of %s: got no shouldCancel after a cancel request for %s", p.name, p.task())
		}
	default:
		w.checkCompletion(p, c, reply, before, after)
	}
}

// checkCompletion compares the answer to completed, or to a callback, with the
// record.
func (w *world) checkCompletion(p *worker, c call, reply answer, before, after run.Run) {
	if after.Attempt.Number != p.attempt() {
		return // a later attempt has started during the call
	}
	if after.Attempt.Report == nil && after.Attempt.Outcome != run.OutcomeCancelled {
		w.Fail("acknowledged report of attempt %d of %s is lost", p.attempt(), p.task())
	}
	final := string(after.Attempt.Outcome)
	if c.route == "completed" {
		var body contract.CompletedAnswer
		if err := json.Unmarshal(reply.text, &body); err != nil || body.FinalState != final {
			w.Fail("completed of %s: got %s, and attempt %d of %s is %s", p.name, reply.text, p.attempt(), p.task(), final)
		}
	}
	if before.Cancel != nil && before.Attempt.Report == nil && final != contract.OutcomeCancelled {
		w.Fail("report after a cancel request for %s: got outcome %[3]s of attempt %[2]d, want CANCELLED", p.task(), p.attempt(), final)
	}
	if report := after.Attempt.Report; c.outcome == contract.OutcomeCancelled && before.Attempt.Report == nil && report != nil && report.Phase == "" {
		w.Fail("cancelledDuringPhase of %s is lost", p.name)
	}
	if c.successful && final == contract.OutcomeSucceeded {
		w.attempt(p.task(), p.attempt()).succeeded = true
	}
}
