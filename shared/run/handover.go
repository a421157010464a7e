package run

// The history of an execution is limited. The record has an estimate of its
// events that is never too low: handlers count what the states since the last
// handler may have added. Before the history is full, the run continues in a new
// execution.
const (
	// MaxEvents is the number of events that an execution's history can have
	// (AWS Step Functions: 25,000).
	MaxEvents = 25_000
	// eventsPerVisit covers a Task with a handler (six events at most), and a
	// Choice and a Wait (two each) on the way to it.
	eventsPerVisit = 10
	// eventsPerRetry is what each retry of a Task adds.
	eventsPerRetry = 3
	// handOverShare is the part of the history after which the run is handed over.
	// The rest has room for two Tasks whose every retry fails before a handler can
	// count it: 2 * 2,880 * eventsPerRetry.
	handOverShare = 4
)

// Visited is a fact from a handler of the execution's current state. It counts the
// events that the visit adds to the execution's history.
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
		// A handler that failed before its commit counted nothing, so this call also
		// counts the token state that was left, even if nothing else changes.
		visits, d.changed = 3, d.changed || acted
	}
	if acted && d.changed {
		d.Execution.Events += visits*eventsPerVisit + eventsPerRetry*f.Retries
	}
	return nil
}

// HandedOver: the execution's history is nearly full, and a new execution continues
// the run. It changes nothing before that, and if the call is a repetition: the
// calling execution then waits in a later state.
type HandedOver struct {
	// Generation is as in Evaluated, Retries as in Visited.
	Generation int
	Retries    int
	// MaxEvents is the limit of a history; 0 is the constant MaxEvents.
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

// startExecution replaces the run's execution. The token of the replaced one
// belongs to a state that it has left.
func (d *draft) startExecution() {
	d.release()
	d.Execution.Start++
	d.Execution.Events, d.Execution.Pending = 0, nil
	d.effects = []Effect{{Kind: EffectStart, Execution: ExecutionName(d.Ref(), d.Execution.Start)}}
	d.changed = true
	if d.Slot.State == SlotQueued || d.AwaitsKey() {
		// The new execution joins the queue at once, and its token becomes the
		// queue's.
		d.await(StepQueued)
	}
}

// restarts returns how often a lost execution was replaced.
func (e Execution) restarts() int { return e.Start - 1 - e.HandOvers }
