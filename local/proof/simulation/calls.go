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
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
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
	w.Watch.DuringCall(p.task())
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
	w.checks.CheckCall(p, c, reply, before, after, calledAt)
	if before.Attempt.Report == nil && after.Attempt.Report != nil && after.Attempt.Number == p.attempt() {
		w.attempt(p.task(), p.attempt()).reported = true
	}
	return reply
}

// serve makes one HTTP exchange. A process that crashes sends no response.
func (w *machines) serve(c call) answer {
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

func (w *machines) attempt(task string, attempt int) *attemptFacts {
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

// refusal is the answer of a platform that did not start a machine for an attempt.
type refusal struct {
	at      time.Time
	runner  string
	code    fault.Code
	message string
}

// reason returns the reason of a fallback after this refusal.
func (r refusal) reason() platform.FallbackReason {
	return map[fault.Code]platform.FallbackReason{
		fault.Capacity: platform.FallbackCapacity, fault.Image: platform.FallbackImage, fault.Throttled: platform.FallbackThrottled,
	}[r.code]
}
