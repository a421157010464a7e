package machines

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Call is one HTTP call of a worker.
type Call struct {
	Route, url, Token string
	body              any
	// Successful and outcome describe the report in a call of completed or in a callback.
	Successful bool
	Outcome    string
}

// Answer is an HTTP response. The zero value is a lost response.
type Answer struct {
	Status int
	Text   []byte
}

// conclusive reports whether the worker may stop repeating the call.
func (a Answer) conclusive() bool { return a.Status != 0 && a.Status < http.StatusInternalServerError }

// OK reports whether the call succeeded.
func (a Answer) OK() bool { return a.Status == http.StatusOK }

// send makes a call. The request or the response can be lost, and the request can arrive a
// second time later.
func (p *Worker) send(c Call) Answer {
	w := p.w
	w.Watch.DuringCall(p.Task())
	if w.Injects("lost call", w.Plan.LostCalls) {
		return Answer{}
	}
	reply := p.deliver(c)
	if w.Injects("late call of a worker", w.Plan.Late*0.3) {
		w.Time.After(w.UpTo(4*time.Minute), func() { p.deliver(c) })
	}
	if w.Injects("lost call", w.Plan.LostCalls) {
		return Answer{}
	}
	return reply
}

// deliver passes the call to the real handler and checks its effect.
func (p *Worker) deliver(c Call) Answer {
	w := p.w
	if w.Process.Crashed || w.Down(harness.NetworkOutage) {
		p.Refused++
		return Answer{}
	}
	p.Refused = 0
	before, known := w.Record(p.Task())
	calledAt := w.Time.Now
	w.Calls++
	reply := w.serve(c)
	w.Note("%s of %s: %d %.120s", c.Route, p.Name, reply.Status, reply.Text)
	if !known || reply.Status == 0 {
		return reply
	}
	after, ok := w.Record(p.Task())
	if !ok {
		return reply
	}
	w.checks.CheckCall(p, c, reply, before, after, calledAt)
	if before.Attempt.Report == nil && after.Attempt.Report != nil && after.Attempt.Number == p.Attempt() {
		w.Attempt(p.Task(), p.Attempt()).Reported = true
	}
	return reply
}

// serve makes one HTTP exchange. A process that crashes sends no response.
func (w *Machines) serve(c Call) Answer {
	body, err := json.Marshal(c.body)
	if err != nil {
		w.Fail("cannot encode a worker's body: %v", err)
		return Answer{}
	}
	_, path, _ := strings.Cut(c.url, "://")
	request := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "http://127.0.0.1"+path[strings.IndexByte(path, '/'):], bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	recorder := httptest.NewRecorder()
	if !w.Call(func(ctx context.Context) { w.Process.Api.ServeHTTP(recorder, request.WithContext(ctx)) }) {
		return Answer{}
	}
	return Answer{recorder.Code, bytes.TrimSpace(recorder.Body.Bytes())}
}

// AttemptFacts is the knowledge of an attempt's workers and platforms, from the responses they
// got.
type AttemptFacts struct {
	// Worker is the accepted worker. lastCallAt is the time of its last accepted call.
	Worker     string
	LastCallAt time.Time
	// Reported means that a call with a report has returned.
	Reported bool
	// Succeeded means that a success was acknowledged. defectiveOutput means that the upload
	// differs from its report.
	Succeeded, DefectiveOutput bool
	// ExitedZero means that a machine of the attempt ended with exit code 0.
	ExitedZero bool
	// Machines counts the created machines. strangers counts those that were stopped from
	// outside of Sortie.
	Machines, Strangers int
	// Refusals are the answers of platforms that did not start a machine.
	Refusals []Refusal
	// LongStart means that a refusal of the runner, or a wait for a permitted start, has
	// extended the start limit.
	LongStart bool
	// Evicted means that the attempt was ended because its pool drains.
	Evicted bool
	// Withdrawn means that a launch destroyed its machine, because it could not start or took
	// too long. Until that is committed, the machine seems to have been stopped from outside.
	Withdrawn bool
	// NoticedAt is the time at which a worker first received a cancel request or SIGTERM.
	NoticedAt time.Time
	// FaultChecked means that the fault that ended the attempt was checked.
	FaultChecked bool
}

// Attempt returns the facts of an attempt.
func (w *Machines) Attempt(task string, attempt int) *AttemptFacts {
	key := attemptKey{task, attempt}
	if w.attempts[key] == nil {
		w.attempts[key] = &AttemptFacts{}
	}
	return w.attempts[key]
}

type attemptKey struct {
	Task   string
	number int
}

// Refusal is the answer of a platform that did not start a machine for an attempt.
type Refusal struct {
	At      time.Time
	Runner  string
	Code    fault.Code
	Message string
}

// Reason returns the reason of a fallback after this refusal.
func (r Refusal) Reason() platform.FallbackReason {
	return map[fault.Code]platform.FallbackReason{
		fault.Capacity: platform.FallbackCapacity, fault.Image: platform.FallbackImage, fault.Throttled: platform.FallbackThrottled,
	}[r.Code]
}
