package simulation

import (
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// introduce says started until it is answered, and begins to work; a few workers
// leave it out.
func (p *worker) introduce() {
	w := p.w
	if w.chance(0.15) {
		p.work()
		return
	}
	told := p.send(p.of("started", contract.TaskStarted{
		Attempt: p.attempt(), WorkerID: p.name, StartedAt: w.time.now, HandlesSigterm: p.handlesSigterm,
	}))
	switch {
	case !told.given():
		p.later(p.pause(), p.introduce)
	case told.ok() || p.deaf:
		p.work()
	default:
		p.exit(0)
	}
}

// pause is before a call is made again that was not answered.
func (p *worker) pause() time.Duration { return time.Second + p.w.upTo(4*time.Second) }

func (p *worker) of(route string, body any) call {
	return call{route: route, url: p.envelope.CallbackBaseURL + "/v1/tasks/" + p.task() + "/" + route, token: p.token, body: body}
}

// work begins the heartbeats and the work, which sometimes is long.
func (p *worker) work() {
	w := p.w
	length := w.upTo(2 * time.Minute)
	switch {
	case w.chance(w.plan.quick):
		length = 0
	case w.chance(0.1):
		length = w.upTo(20 * time.Minute)
	}
	p.heartbeat()
	w.soon(length, func() { p.resume(p.finish) })
}

func (p *worker) interval() time.Duration {
	return time.Duration(p.envelope.HeartbeatIntervalMS) * time.Millisecond
}

// beat is one heartbeat, and the next ones.
func (p *worker) heartbeat() {
	if p.ended() || p.silent {
		return
	}
	progress := p.w.random.IntN(101)
	told := p.send(p.of("heartbeat", contract.TaskHeartbeat{
		Attempt: p.attempt(), WorkerID: p.name, HeartbeatAt: p.w.time.now.Add(-p.w.upTo(time.Hour)), ProgressPct: &progress,
	}))
	next := p.interval()
	switch {
	case !told.given():
		next = p.pause()
	case told.ok():
		p.heed(told)
	case !p.deaf:
		p.exit(0) // it was told that it is not wanted
		return
	}
	p.later(next, p.heartbeat)
}

// heed does what the answer to a heartbeat asks for.
func (p *worker) heed(told answer) {
	var body contract.HeartbeatAnswer
	if err := json.Unmarshal(told.text, &body); err != nil {
		p.w.broken("the answer to a heartbeat cannot be read: %v", err)
		return
	}
	if body.TaskToken != "" {
		p.w.renewals++
		p.token = body.TaskToken
		if body.Output != nil {
			p.envelope.Output = body.Output
		}
	}
	if body.ShouldCancel && !p.deaf && !p.cancelling {
		p.later(p.w.upTo(8*time.Second), func() { p.abandon("shouldCancel") })
	}
}

// abandon ends the work because that was asked for.
func (p *worker) abandon(phase string) {
	if p.cancelling || p.silent {
		return
	}
	p.cancelling = true
	p.complete(contract.TaskCompleted{
		Outcome: contract.OutcomeCancelled, CancelledDuringPhase: phase, PartialProgress: json.RawMessage(`{"done":1}`),
	})
}

// result is how the work ends by itself: well, for the most part.
func (p *worker) result() contract.TaskCompleted {
	w := p.w
	switch draw := w.random.Float64(); {
	case draw < 0.15:
		categories := contract.Categories()
		failed := &contract.TaskError{Category: categories[w.random.IntN(len(categories))], Message: "it did not work"}
		if w.chance(0.3) {
			failed.Retryable = new(w.chance(0.5))
		}
		return contract.TaskCompleted{Outcome: contract.OutcomeFailed, Error: failed}
	case draw < 0.18:
		return contract.TaskCompleted{Outcome: contract.OutcomeCancelled, CancelledDuringPhase: "nobody asked"}
	case draw < 0.22:
		return contract.TaskCompleted{Outcome: contract.OutcomeSucceeded}
	}
	output := p.upload(p.envelope.Output.Key)
	return contract.TaskCompleted{Outcome: contract.OutcomeSucceeded, Output: &output}
}

// complete says the last word until it is answered, and exits.
func (p *worker) complete(body contract.TaskCompleted) {
	w := p.w
	body.Attempt, body.WorkerID, body.CompletedAt = p.attempt(), p.name, w.time.now
	last := p.of("completed", body)
	last.success, last.outcome = body.Outcome == contract.OutcomeSucceeded, body.Outcome
	if w.chance(w.plan.late) && w.chance(0.3) {
		w.time.after(w.upTo(10*time.Minute), func() { p.send(last) })
		p.later(w.upTo(2*time.Second), func() { p.exit(0) })
		return
	}
	if told := p.send(last); !told.given() {
		p.later(p.pause(), func() { p.complete(body) })
		return
	}
	p.silent = true
	if !w.chance(0.1) { // else it lingers
		p.later(w.upTo(3*time.Second), func() { p.exit(0) })
	}
}
