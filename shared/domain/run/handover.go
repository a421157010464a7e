package run

import (
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// The history of an execution is limited. The record has an estimate of its events that is
// never too low: handlers count the events that states since the last handler may have added.
// Before the history is full, the run continues in a new execution.
const (
	// MaxEvents is the maximum number of events in an execution's history (AWS Step Functions:
	// 25,000).
	MaxEvents = 25_000
	// eventsPerVisit covers a Task with a handler (at most six events), and a Choice and a Wait
	// before it (two each).
	eventsPerVisit = 10
	// eventsPerRetry is the number of events that each retry of a Task adds.
	eventsPerRetry = 3
	// handOverShare: the run is handed over once the history is 1/handOverShare full. The rest
	// has room for two Tasks all of whose retries fail before a handler can count them: 2 *
	// 2,880 * eventsPerRetry.
	handOverShare = 4
)

// Visited is a fact from a handler of the execution's current state. It counts the events that
// the visit adds to the execution's history.
type Visited struct {
	Fact Fact
	// Retries is how often the state was retried before this call.
	Retries int
}

func (f Visited) acted(r Run) bool {
	own, ok := f.Fact.(fromExecution)
	return ok && own.acted(r)
}

func (f Visited) apply(d *draft) error {
	acted := f.acted(d.Run)
	if err := f.Fact.apply(d); err != nil {
		return err
	}
	visits := 1
	if _, reconciled := f.Fact.(Evaluated); reconciled && !d.State.Terminal() {
		// A handler that failed before its commit counted nothing. So this call also counts the
		// token state that was left, even if nothing else changes.
		visits, d.changed = 3, d.changed || acted
	}
	if acted && d.changed {
		d.Execution.Events += visits*eventsPerVisit + eventsPerRetry*f.Retries
	}
	return nil
}

// HandedOver: the execution's history is nearly full, and a new execution continues the run. It
// changes nothing before that, or if the call is a repetition: the calling execution then waits
// in a later state.
type HandedOver struct {
	// Generation is as in Evaluated, Retries as in Visited.
	Generation int
	Retries    int
	// MaxEvents is the limit of a history; 0 means the constant MaxEvents.
	MaxEvents int
}

func (f HandedOver) acted(r Run) bool {
	most := f.MaxEvents
	if most == 0 {
		most = MaxEvents
	}
	return !r.State.Terminal() && (r.Wait.Token == "" || f.Generation == r.Wait.Generation) &&
		r.Execution.Events+eventsPerRetry*f.Retries >= most/handOverShare
}

func (f HandedOver) apply(d *draft) error {
	if f.acted(d.Run) {
		d.Execution.HandOvers++
		d.startExecution()
	}
	return nil
}

// startExecution replaces the run's execution. It completes the token of the replaced one. Pending
// actions of the job stay.
func (d *draft) startExecution() {
	d.completeToken()
	d.Execution.Start++
	d.Execution.Events, d.Execution.Pending = 0, pendingEffects(d.Execution.Pending, Effect.onExecution)
	d.effects = []Effect{{Kind: EffectStart, Execution: ExecutionName(d.Ref(), d.Execution.Start)}}
	d.changed = true
	if d.Slot.State == platform.SlotQueued || d.AwaitsKey() {
		// The new execution queues at once; its token replaces the one of the queue.
		d.enterTokenState(StepQueued)
	}
}

// restarts returns how often a lost execution was replaced.
func (e Execution) restarts() int { return e.Start - 1 - e.HandOvers }
