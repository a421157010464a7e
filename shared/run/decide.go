package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Fact is something that happened to a run. The types of this package are all
// there are.
type Fact interface {
	// apply changes the draft, or returns the fault that says why the fact is
	// refused. A fact that changes nothing returns nil.
	apply(d *draft) error
}

// fromExecution is a fact by which the execution itself acts on the record: it
// shows that what was to be done for it is done.
type fromExecution interface {
	// acted says whether the fact is of the execution as it is now.
	acted(r Run) bool
}

// Decision is what a fact makes of a run.
type Decision struct {
	// Run is the record as it is to be committed, with the version it was
	// decided on; the store raises it.
	Run    Run
	Events []Event
	// Effects are to be done after the commit, in this order. Each may be
	// repeated.
	Effects []Effect
	// Lease is what the commit does to the pool.
	Lease LeaseChange
	// Beat is what the commit does to the item of the worker's heartbeats.
	Heartbeat HeartbeatChange
	// Changed is false where there is nothing to commit.
	Changed bool
}

// LeaseChange is what a commit does to the leases and the queue of its pool.
type LeaseChange string

// The changes. The zero value leaves the pool as it is.
const (
	LeaseTake    LeaseChange = "take"    // a free slot, and nobody may be waiting for one
	LeaseEnqueue LeaseChange = "enqueue" // to the end of the line
	LeaseGrant   LeaseChange = "grant"   // out of the line into a free slot
	LeaseDequeue LeaseChange = "dequeue" // out of the line
	LeaseRelease LeaseChange = "release" // the slot is given back
)

// Effect is something to do outside of the store after a commit.
type Effect struct {
	Kind EffectKind `json:"kind"`
	// Execution names the execution that is to be started or stopped.
	Execution string `json:"execution,omitempty"`
	// Token, Step and Generation say which token is to be completed.
	Token      string `json:"token,omitempty"`
	Step       Step   `json:"step,omitempty"`
	Generation int    `json:"generation,omitempty"`
}

// EffectKind is what an effect does.
type EffectKind string

// The kinds of effects.
const (
	EffectStart    EffectKind = "start-execution"
	EffectComplete EffectKind = "complete-token"
	EffectStop     EffectKind = "stop-execution"
)

// effectSlack is how long an effect may take until the sweep repeats it, and
// stateSlack how far past a state's own limit it asks.
const (
	effectSlack = 30 * time.Second
	stateSlack  = time.Minute
)

// Decide tells what the fact makes of the run at that time. An error is either
// a fault, which refuses the fact and is its sender's answer, or a defect of
// this package. In both cases nothing is to be committed.
func Decide(r Run, f Fact, now time.Time) (Decision, error) {
	d := &draft{Run: r, now: now.UTC()}
	if own, ok := f.(fromExecution); ok && own.acted(r) && len(r.Execution.Pending) > 0 {
		d.Execution.Pending, d.changed = nil, true
	}
	if err := f.apply(d); err != nil {
		return Decision{}, err
	}
	if d.illegal != nil {
		return Decision{}, fmt.Errorf("cannot apply %T: %w", f, d.illegal)
	}
	if !d.changed {
		return Decision{Run: r}, nil
	}
	d.Execution.Pending = append(slices.Clone(d.Execution.Pending), d.effects...)
	d.Execution.ActBy = actBy(d.Run, d.now)
	return Decision{
		Run: d.Run, Events: d.events, Effects: d.effects,
		Lease: leaseChange(r.Slot, d.Slot), Heartbeat: d.heartbeat, Changed: true,
	}, nil
}

// draft is a record while a fact is applied to it.
type draft struct {
	Run
	now       time.Time
	events    []Event
	effects   []Effect
	heartbeat HeartbeatChange
	changed   bool
	illegal   error
}

// enter is the one function that writes a state.
func (d *draft) enter(next State, message string, why *fault.Fault) {
	from := d.State
	if !from.CanBecome(next) {
		d.illegal = IllegalTransition{from, next}
		return
	}
	d.State, d.EnteredAt = next, d.now
	d.Spent.Evaluations = 0
	d.emit(Event{Type: transitionEvent(from, next), From: from, Message: message, Fault: why})
}

// tell appends an event about the record as it is now.
func (d *draft) emit(e Event) {
	d.changed = true
	d.EventCount++
	e.Seq, e.At, e.State, e.Attempt = d.EventCount, d.now, d.State, d.Attempt.Number
	if e.From == "" && e.Seq > 1 {
		e.From = d.State
	}
	e.ID = eventID(d.Run, e.Seq, e.At)
	d.events = append(d.events, e)
}

// await sends the execution into a token state, and out of the one it is in.
func (d *draft) await(step Step) {
	d.release()
	d.Wait = Wait{Generation: d.Wait.Generation + 1, Step: step}
	d.changed = true
}

// release sends the execution out of the token state that it is in.
func (d *draft) release() {
	if d.Wait.Token != "" {
		d.effects = append(d.effects, Effect{
			Kind: EffectComplete, Token: d.Wait.Token, Step: d.Wait.Step, Generation: d.Wait.Generation,
		})
		d.changed = true
	}
	d.Wait.Token, d.Wait.Step = "", ""
}

// finish brings the run to its end.
func (d *draft) finish(end State, message string, why *fault.Fault) {
	d.release()
	d.closeHeartbeat()
	d.Fault = why
	d.Slot.State, d.Slot.Since = "", time.Time{}
	d.enter(end, message, why)
	d.EndedAt = d.now
	d.ExpiresAt = d.now.Add(d.Policy.RecordRetention)
}

// endAttempt says that the attempt is over; what is left is to clean up.
func (d *draft) endAttempt(outcome Outcome, message string, why *fault.Fault) {
	d.release()
	d.closeHeartbeat()
	d.Attempt.Outcome, d.Attempt.EndedAt = outcome, d.now
	d.Fault = why
	d.enter(Terminating, message, why)
	if d.illegal == nil {
		d.events[len(d.events)-1].Exit = d.Attempt.Exit
	}
}

// closeBeat removes the item of the heartbeats, if one is open: no call of the
// attempt is taken as a heartbeat any more.
func (d *draft) closeHeartbeat() {
	if d.Attempt.WorkerID != "" && d.Attempt.Outcome == "" {
		d.heartbeat.Close = true
	}
}

// actBy is the time by which the execution must have acted on the record.
func actBy(r Run, now time.Time) time.Time {
	switch {
	case len(r.Execution.Pending) > 0:
		return now.Add(effectSlack)
	case r.State.Terminal():
		return time.Time{}
	}
	route := RouteOf(r, now)
	switch route.Next {
	case StepPreRun:
		if route.Until.Before(now) {
			return now.Add(stateSlack)
		}
		return route.Until.Add(stateSlack)
	case StepBackingOff, StepRetrying:
		return now.Add(time.Duration(route.Seconds)*time.Second + stateSlack)
	case StepTerminating:
		return now.Add(5 * stateSlack)
	}
	return now.Add(time.Duration(route.TimeoutSeconds)*time.Second + stateSlack)
}

// leaseChange is what leads from one slot to the other in the pool's count.
func leaseChange(before, after Slot) LeaseChange {
	had, has := before.counted(), after.counted()
	switch {
	case had == has:
		return ""
	case had == SlotQueued && has == SlotHeld:
		return LeaseGrant
	case had == SlotQueued:
		return LeaseDequeue
	case had == SlotHeld:
		return LeaseRelease
	case has == SlotQueued:
		return LeaseEnqueue
	}
	return LeaseTake
}

// counted is how the pool counts the run: not at all without a limit.
func (s Slot) counted() SlotState {
	if s.Limit == 0 {
		return ""
	}
	return s.State
}
