package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// call is what a worker says.
type call struct {
	route, url, token string
	body              any
	// success and outcome are what a last word tells.
	success bool
	outcome string
}

// answer is what comes back; its zero value is nothing.
type answer struct {
	status int
	text   []byte
}

// given says whether somebody who knows answered; a failure of ours is no answer.
func (a answer) given() bool { return a.status != 0 && a.status < http.StatusInternalServerError }

func (a answer) ok() bool { return a.status == http.StatusOK }

// serving makes what workers call of a process's use cases.
func (w *world) serving(system *orchestrator.System) (http.Handler, error) {
	return httpkit.New(httpkit.Config{
		Loopback: true, Client: client, Clock: w.time, Log: w.log, NewID: func() string { return w.hex(16) },
	}, callback.Routes(system.Workers)...)
}

// send makes a call: it can be lost, or its answer, and arrive once more later.
func (p *worker) send(c call) answer {
	w := p.w
	w.meddle(p.task())
	if w.chance(w.plan.lostCalls) {
		return answer{}
	}
	told := p.deliver(c)
	if w.chance(w.plan.late * 0.3) {
		w.time.after(w.upTo(4*time.Minute), func() { p.deliver(c) })
	}
	if w.chance(w.plan.lostCalls) {
		return answer{}
	}
	return told
}

// deliver has the real handler take the call, and holds what it does to what was
// promised.
func (p *worker) deliver(c call) answer {
	w := p.w
	if w.process.dead || w.cutOff() {
		return answer{}
	}
	before, known := w.record(p.task())
	began := w.time.now
	w.calls++
	told := w.serve(c)
	w.note("%s of %s: %d %.120s", c.route, p.name, told.status, told.text)
	if !known || told.status == 0 {
		return told
	}
	after, ok := w.record(p.task())
	if !ok {
		return told
	}
	w.checkCall(p, c, told, before, after, began)
	if before.Attempt.Report == nil && after.Attempt.Report != nil && after.Attempt.Number == p.attempt() {
		w.facts(p.task(), p.attempt()).reported = true
	}
	return told
}

// serve is one HTTP exchange; nothing comes back from a process that dies in it.
func (w *world) serve(c call) answer {
	body, err := json.Marshal(c.body)
	if err != nil {
		w.broken("a worker's body cannot be written: %v", err)
		return answer{}
	}
	_, path, _ := strings.Cut(c.url, "://")
	request := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "http://127.0.0.1"+path[strings.IndexByte(path, '/'):], bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	life, recorder := w.process, httptest.NewRecorder()
	life.api.ServeHTTP(recorder, request)
	if life.dead {
		return answer{}
	}
	return answer{recorder.Code, bytes.TrimSpace(recorder.Body.Bytes())}
}

// facts is what was acknowledged about an attempt.
type facts struct {
	// heard is the worker whose calls were taken, and at when the last one was.
	heard string
	at    time.Time
	// blocked is how long the engine had been kept waiting by then.
	blocked time.Duration
	// reported: a last word was taken in a call that is over.
	reported bool
	// good: a success was acknowledged as one. bad: what an upload of it tells is
	// not what lies in the bucket.
	good, bad bool
	// judged: it was declared dead, and that was looked at. cancelBlocked is
	// blocked at its cancel, and one more.
	judged        bool
	cancelBlocked time.Duration
}

func (w *world) facts(task string, attempt int) *facts {
	key := attemptOf{task, attempt}
	if w.known[key] == nil {
		w.known[key] = &facts{}
	}
	return w.known[key]
}

type attemptOf struct {
	task   string
	number int
}

// checkCall holds what a call has done to the worker contract.
func (w *world) checkCall(p *worker, c call, told answer, before, after run.Run, began time.Time) {
	mine := w.facts(p.task(), p.attempt())
	if before.Attempt.Number != p.attempt() && (told.ok() || w.time.now.Equal(began) && after.Version != before.Version) {
		w.broken("%s of attempt %d of %s was taken, and attempt %d is the current one: %d", c.route, p.attempt(), p.task(), before.Attempt.Number, told.status)
	}
	if told.status == http.StatusUnauthorized && p.awake() && c.token == p.token && before.IsCurrent(p.attempt()) && mine.heard == p.name {
		w.broken("%s of %s is not let in: %s", c.route, p.name, told.text)
	}
	if !told.ok() {
		return
	}
	// A last word that repeats another is answered as that was, whoever says it,
	// also where the other one was taken while this call waited.
	if c.route != "callback" && before.Attempt.Report == nil && !mine.reported {
		if mine.heard != "" && mine.heard != p.name {
			w.broken("%s and %s of attempt %d of %s are both heard", mine.heard, p.name, p.attempt(), p.task())
		}
		mine.heard = p.name
	}
	switch c.route {
	case "started":
		mine.at, mine.blocked = began, w.blocked
		if before.Cancel != nil {
			w.broken("%s may start, and a cancel of %s was wished before", p.name, p.task())
		}
	case "heartbeat":
		mine.at, mine.blocked = began, w.blocked
		if before.Cancel != nil && !strings.Contains(string(told.text), `"shouldCancel":true`) {
			w.broken("%s is not told of the cancel of %s", p.name, p.task())
		}
	default:
		w.checkLastWord(p, c, told, before, after)
	}
}

// checkLastWord holds the answer to completed, or to a callback, to the record.
func (w *world) checkLastWord(p *worker, c call, told answer, before, after run.Run) {
	if after.Attempt.Number != p.attempt() {
		return // it was slow, and the run has gone on
	}
	if after.Attempt.Report == nil && after.Attempt.Outcome != run.OutcomeCancelled {
		w.broken("the report of attempt %d of %s was acknowledged and is lost", p.attempt(), p.task())
	}
	final := string(after.Attempt.Outcome)
	if c.route == "completed" {
		var body contract.CompletedAnswer
		if err := json.Unmarshal(told.text, &body); err != nil || body.FinalState != final {
			w.broken("%s was told %s, and attempt %d of %s is %s", p.name, told.text, p.attempt(), p.task(), final)
		}
	}
	if before.Cancel != nil && before.Attempt.Report == nil && final != contract.OutcomeCancelled {
		w.broken("a cancel of %s was wished before, and its attempt %d is %s", p.task(), p.attempt(), final)
	}
	if report := after.Attempt.Report; c.outcome == contract.OutcomeCancelled && before.Attempt.Report == nil && report != nil && report.Phase == "" {
		w.broken("where %s was cancelled is not kept", p.name)
	}
	if c.success && final == contract.OutcomeSucceeded {
		w.facts(p.task(), p.attempt()).good = true
	}
}
