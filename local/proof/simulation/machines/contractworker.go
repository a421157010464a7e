package machines

import (
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// reportStarted repeats started until it is answered, and then begins the work. Some workers
// omit started.
func (p *Worker) reportStarted() {
	w := p.w
	if w.Chance(0.15) {
		p.work()
		return
	}
	reply := p.send(p.callOf("started", contract.TaskStarted{
		Attempt: p.Attempt(), WorkerID: p.Name, StartedAt: w.Time.Now, HandlesSigterm: p.handlesSigterm,
	}))
	switch {
	case !reply.conclusive():
		p.later(p.retryDelay(), p.reportStarted)
	case reply.OK() || p.ignoresSignals:
		p.work()
	default:
		p.Exit(0)
	}
}

// retryDelay returns the delay before an unanswered call is repeated: a few seconds, or one
// heartbeat interval.
func (p *Worker) retryDelay() time.Duration {
	if p.patient {
		return p.interval()
	}
	return min(time.Second+p.w.UpTo(4*time.Second), p.interval())
}

func (p *Worker) callOf(route string, body any) Call {
	return Call{Route: route, url: p.Envelope.CallbackBaseURL + "/v1/tasks/" + p.Task() + "/" + route, Token: p.Token, body: body}
}

// work starts the work and its heartbeats.
func (p *Worker) work() {
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
		p.later(p.Envelope.Deadline.Sub(w.Time.Now), p.reachDeadline)
	}
	p.heartbeat()
	w.soon(length, func() { p.resume(p.endWork) })
}

func (p *Worker) interval() time.Duration {
	return time.Duration(p.Envelope.HeartbeatIntervalMS) * time.Millisecond
}

// heartbeat sends a heartbeat and schedules the next one.
func (p *Worker) heartbeat() {
	if p.gone() || p.silent {
		return
	}
	progress := p.w.Random.IntN(101)
	reply := p.send(p.callOf("heartbeat", contract.TaskHeartbeat{
		Attempt: p.Attempt(), WorkerID: p.Name, HeartbeatAt: p.w.Time.Now.Add(-p.w.UpTo(time.Hour)), ProgressPct: &progress,
	}))
	next := p.interval()
	switch {
	case !reply.conclusive():
		next = p.retryDelay()
	case reply.OK():
		p.Beating = true
		p.handleHeartbeat(reply)
	case !p.ignoresSignals:
		p.Exit(0) // the attempt has ended or belongs to another worker
		return
	}
	p.later(next, p.heartbeat)
}

// handleHeartbeat processes the answer to a heartbeat.
func (p *Worker) handleHeartbeat(reply Answer) {
	var body contract.HeartbeatAnswer
	if err := json.Unmarshal(reply.Text, &body); err != nil {
		p.w.Fail("cannot decode the answer to a heartbeat: %v", err)
		return
	}
	if body.TaskToken != "" {
		p.w.Renewals++
		p.Token, p.Envelope.TokenExpiresAt = body.TaskToken, body.TokenExpiresAt
		if body.Output != nil {
			p.Envelope.Output = body.Output
		}
	}
	if body.ShouldCancel && !p.ignoresSignals && !p.cancelling {
		p.later(p.w.UpTo(8*time.Second), func() { p.reportCancelled("shouldCancel") })
	}
}

// reportCancelled ends the work after a cancel request or SIGTERM.
func (p *Worker) reportCancelled(phase string) {
	if p.cancelling || p.silent {
		return
	}
	p.cancelling = true
	p.complete(contract.TaskCompleted{
		Outcome: contract.OutcomeCancelled, CancelledDuringPhase: phase, PartialProgress: json.RawMessage(`{"done":1}`),
	})
}

// result draws the result of uninterrupted work, mostly a success.
func (p *Worker) result() contract.TaskCompleted {
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
	output := p.upload(p.Envelope.Output.Key)
	return contract.TaskCompleted{Outcome: contract.OutcomeSucceeded, Output: &output}
}

// complete repeats completed until it is answered, and then exits.
func (p *Worker) complete(body contract.TaskCompleted) {
	w := p.w
	body.Attempt, body.WorkerID, body.CompletedAt = p.Attempt(), p.Name, w.Time.Now
	last := p.callOf("completed", body)
	last.Successful, last.Outcome = body.Outcome == contract.OutcomeSucceeded, body.Outcome
	if w.Injects("late call of a worker", w.Plan.Late) && w.Chance(0.3) {
		w.Time.After(w.UpTo(10*time.Minute), func() { p.send(last) })
		p.later(w.UpTo(2*time.Second), func() { p.Exit(0) })
		return
	}
	if reply := p.send(last); !reply.conclusive() {
		p.later(p.retryDelay(), func() { p.complete(body) })
		return
	}
	p.silent = true
	if !w.Chance(0.1) { // otherwise the process stays
		p.later(w.UpTo(3*time.Second), func() { p.Exit(0) })
	}
}

// reachDeadline ends the work at the envelope's deadline.
func (p *Worker) reachDeadline() {
	if p.cancelling || p.silent {
		return
	}
	p.cancelling = true
	p.complete(contract.TaskCompleted{
		Outcome: contract.OutcomeFailed, Error: &contract.TaskError{Category: contract.CategoryTimeout, Message: "deadline"},
	})
}
