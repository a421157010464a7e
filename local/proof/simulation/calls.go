package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// call is one HTTP call of a worker.
type call struct {
	route, url, token string
	body              any
	// successful and outcome describe the report in a call of completed or in a callback.
	successful bool
	outcome    string
}

// answer is an HTTP response. The zero value is a lost response.
type answer struct {
	status int
	text   []byte
}

// conclusive reports whether the worker may stop repeating the call.
func (a answer) conclusive() bool { return a.status != 0 && a.status < http.StatusInternalServerError }

func (a answer) ok() bool { return a.status == http.StatusOK }

// send makes a call. The request or the response can be lost, and the request can arrive a
// second time later.
func (p *worker) send(c call) answer {
	w := p.w
	w.maybeCancel(p.task())
	if w.Chance(w.Plan.LostCalls) {
		return answer{}
	}
	reply := p.deliver(c)
	if w.Chance(w.Plan.Late * 0.3) {
		w.Time.After(w.UpTo(4*time.Minute), func() { p.deliver(c) })
	}
	if w.Chance(w.Plan.LostCalls) {
		return answer{}
	}
	return reply
}

// deliver passes the call to the real handler and checks its effect.
func (p *worker) deliver(c call) answer {
	w := p.w
	if w.Process.Crashed || w.Down(harness.NetworkOutage) {
		p.refused++
		return answer{}
	}
	p.refused = 0
	before, known := w.Record(p.task())
	calledAt := w.Time.Now
	w.calls++
	reply := w.serve(c)
	w.Note("%s of %s: %d %.120s", c.route, p.name, reply.status, reply.text)
	if !known || reply.status == 0 {
		return reply
	}
	after, ok := w.Record(p.task())
	if !ok {
		return reply
	}
	w.checkCall(p, c, reply, before, after, calledAt)
	if before.Attempt.Report == nil && after.Attempt.Report != nil && after.Attempt.Number == p.attempt() {
		w.attempt(p.task(), p.attempt()).reported = true
	}
	return reply
}

// serve makes one HTTP exchange. A process that crashes sends no response.
func (w *world) serve(c call) answer {
	body, err := json.Marshal(c.body)
	if err != nil {
		w.Fail("cannot encode a worker's body: %v", err)
		return answer{}
	}
	_, path, _ := strings.Cut(c.url, "://")
	request := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "http://127.0.0.1"+path[strings.IndexByte(path, '/'):], bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	recorder := httptest.NewRecorder()
	if !w.Call(func(ctx context.Context) { w.Process.Api.ServeHTTP(recorder, request.WithContext(ctx)) }) {
		return answer{}
	}
	return answer{recorder.Code, bytes.TrimSpace(recorder.Body.Bytes())}
}

// attemptFacts is the knowledge of an attempt's workers and platforms, from the responses they
// got.
type attemptFacts struct {
	// worker is the accepted worker. lastCallAt is the time of its last accepted call.
	worker     string
	lastCallAt time.Time
	// reported means that a call with a report has returned.
	reported bool
	// succeeded means that a success was acknowledged. defectiveOutput means that the upload
	// differs from its report.
	succeeded, defectiveOutput bool
	// exitedZero means that a machine of the attempt ended with exit code 0.
	exitedZero bool
	// machines counts the created machines. strangers counts those that were stopped from
	// outside of Sortie.
	machines, strangers int
	// refusals are the answers of platforms that did not start a machine.
	refusals []refusal
	// longStart means that a refusal of the runner, or a wait for a permitted start, has
	// extended the start limit.
	longStart bool
	// evicted means that the attempt was ended because its pool drains.
	evicted bool
	// withdrawn means that a launch destroyed its machine, because it could not start or took
	// too long. Until that is committed, the machine seems to have been stopped from outside.
	withdrawn bool
	// noticedAt is the time at which a worker first received a cancel request or SIGTERM.
	noticedAt time.Time
	// faultChecked means that the fault that ended the attempt was checked.
	faultChecked bool
}

func (w *world) attempt(task string, attempt int) *attemptFacts {
	key := attemptKey{task, attempt}
	if w.attempts[key] == nil {
		w.attempts[key] = &attemptFacts{}
	}
	return w.attempts[key]
}

type attemptKey struct {
	task   string
	number int
}

// checkCall checks the effect of a call against the worker contract.
func (w *world) checkCall(p *worker, c call, reply answer, before, after run.Run, calledAt time.Time) {
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
