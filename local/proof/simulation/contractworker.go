package simulation

import (
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// reportStarted repeats started until it is answered, and then begins the work. Some workers
// omit started.
func (p *worker) reportStarted() {
	w := p.w
	if w.Chance(0.15) {
		p.work()
		return
	}
	reply := p.send(p.callOf("started", contract.TaskStarted{
		Attempt: p.attempt(), WorkerID: p.name, StartedAt: w.Time.Now, HandlesSigterm: p.handlesSigterm,
	}))
	switch {
	case !reply.conclusive():
		p.later(p.retryDelay(), p.reportStarted)
	case reply.ok() || p.ignoresSignals:
		p.work()
	default:
		p.exit(0)
	}
}

// retryDelay returns the delay before an unanswered call is repeated: a few seconds, or one
// heartbeat interval.
func (p *worker) retryDelay() time.Duration {
	if p.patient {
		return p.interval()
	}
	return min(time.Second+p.w.UpTo(4*time.Second), p.interval())
}

func (p *worker) callOf(route string, body any) call {
	return call{route: route, url: p.envelope.CallbackBaseURL + "/v1/tasks/" + p.task() + "/" + route, token: p.token, body: body}
}

// work starts the work and its heartbeats.
func (p *worker) work() {
	w := p.w
	length := w.UpTo(w.longestWork())
	switch {
	case w.Chance(w.Plan.Immediate):
		length = 0
	case w.Chance(0.1), p.m.isServer():
		length = w.UpTo(2 * w.Longest)
	}
	if p.obeysDeadline {
		w.checks.CheckDeadline(p)
		p.later(p.envelope.Deadline.Sub(w.Time.Now), p.reachDeadline)
	}
	p.heartbeat()
	w.soon(length, func() { p.resume(p.endWork) })
}

func (p *worker) interval() time.Duration {
	return time.Duration(p.envelope.HeartbeatIntervalMS) * time.Millisecond
}

// heartbeat sends a heartbeat and schedules the next one.
func (p *worker) heartbeat() {
	if p.gone() || p.silent {
		return
	}
	progress := p.w.Random.IntN(101)
	reply := p.send(p.callOf("heartbeat", contract.TaskHeartbeat{
		Attempt: p.attempt(), WorkerID: p.name, HeartbeatAt: p.w.Time.Now.Add(-p.w.UpTo(time.Hour)), ProgressPct: &progress,
	}))
	next := p.interval()
	switch {
	case !reply.conclusive():
		next = p.retryDelay()
	case reply.ok():
		p.beating = true
		p.handleHeartbeat(reply)
	case !p.ignoresSignals:
		p.exit(0) // the attempt has ended or belongs to another worker
		return
	}
	p.later(next, p.heartbeat)
}

// handleHeartbeat processes the answer to a heartbeat.
func (p *worker) handleHeartbeat(reply answer) {
	var body contract.HeartbeatAnswer
	if err := json.Unmarshal(reply.text, &body); err != nil {
		p.w.Fail("cannot decode the answer to a heartbeat: %v", err)
		return
	}
	if body.TaskToken != "" {
		p.w.renewals++
		p.token, p.envelope.TokenExpiresAt = body.TaskToken, body.TokenExpiresAt
		if body.Output != nil {
			p.envelope.Output = body.Output
		}
	}
	if body.ShouldCancel && !p.ignoresSignals && !p.cancelling {
		p.later(p.w.UpTo(8*time.Second), func() { p.reportCancelled("shouldCancel") })
	}
}

// reportCancelled ends the work after a cancel request or SIGTERM.
func (p *worker) reportCancelled(phase string) {
	if p.cancelling || p.silent {
		return
	}
	p.cancelling = true
	p.complete(contract.TaskCompleted{
		Outcome: contract.OutcomeCancelled, CancelledDuringPhase: phase, PartialProgress: json.RawMessage(`{"done":1}`),
	})
}

// result draws the result of uninterrupted work, mostly a success.
func (p *worker) result() contract.TaskCompleted {
	w := p.w
	switch draw := w.Random.Float64(); {
	case draw < 0.15:
		categories := contract.Categories()
		failed := &contract.TaskError{Category: categories[w.Random.IntN(len(categories))], Message: "simulated failure"}
		if w.Chance(0.3) {
			failed.Retryable = new(w.Chance(0.5))
		}
		return contract.TaskCompleted{Outcome: contract.OutcomeFailed, Error: failed}
	case draw < 0.18:
		return contract.TaskCompleted{Outcome: contract.OutcomeCancelled, CancelledDuringPhase: "not requested"}
	case draw < 0.22:
		return contract.TaskCompleted{Outcome: contract.OutcomeSucceeded}
	}
	output := p.upload(p.envelope.Output.Key)
	return contract.TaskCompleted{Outcome: contract.OutcomeSucceeded, Output: &output}
}

// complete repeats completed until it is answered, and then exits.
func (p *worker) complete(body contract.TaskCompleted) {
	w := p.w
	body.Attempt, body.WorkerID, body.CompletedAt = p.attempt(), p.name, w.Time.Now
	last := p.callOf("completed", body)
	last.successful, last.outcome = body.Outcome == contract.OutcomeSucceeded, body.Outcome
	if w.Chance(w.Plan.Late) && w.Chance(0.3) {
		w.Time.After(w.UpTo(10*time.Minute), func() { p.send(last) })
		p.later(w.UpTo(2*time.Second), func() { p.exit(0) })
		return
	}
	if reply := p.send(last); !reply.conclusive() {
		p.later(p.retryDelay(), func() { p.complete(body) })
		return
	}
	p.silent = true
	if !w.Chance(0.1) { // otherwise the process stays
		p.later(w.UpTo(3*time.Second), func() { p.exit(0) })
	}
}

// reachDeadline ends the work at the envelope's deadline.
func (p *worker) reachDeadline() {
	if p.cancelling || p.silent {
		return
	}
	p.cancelling = true
	p.complete(contract.TaskCompleted{
		Outcome: contract.OutcomeFailed, Error: &contract.TaskError{Category: contract.CategoryTimeout, Message: "deadline"},
	})
}
