package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Fact is something that happened to a run. The types of this package are the
// only facts.
type Fact interface {
	// apply changes the draft, or returns the fault that refuses the fact. A fact that changes
	// nothing returns nil.
	apply(d *draft) error
}

// fromExecution is a fact that comes from the execution itself. It shows that the pending
// effects are done.
type fromExecution interface {
	// acted reports whether the fact comes from the current execution.
	acted(r Run) bool
}

// Decision is the result of applying a fact to a run.
type Decision struct {
	// Run is the record to commit. Its Version is the one that the decision read; the store
	// increments it.
	Run    Run
	Events []Event
	// Effects are carried out after the commit, in this order. Each is idempotent.
	Effects []Effect
	// Lease, JobLease and KeyLease are the changes of the leases and queues of the pool, the
	// job and the key.
	Lease, JobLease, KeyLease LeaseChange
	// Heartbeat is the change of the heartbeat item.
	Heartbeat HeartbeatChange
	// Ledger is the change of the accounts of the run's Reservation; nil if they do not change.
	Ledger *budget.Change
	// Refusals are the failures of the platform of the run's pool that the fact reports.
	Refusals []*fault.Fault
	// Changed is false if there is nothing to commit.
	Changed bool
}

// LeaseChange is what a commit does to the leases and the queue of its pool.
type LeaseChange string

// The changes. The zero value leaves the pool unchanged.
const (
	LeaseTake    LeaseChange = "take"    // take a free slot; no other run may be queued
	LeaseEnqueue LeaseChange = "enqueue" // join the end of the queue
	LeaseGrant   LeaseChange = "grant"   // leave the queue and take a free slot
	LeaseDequeue LeaseChange = "dequeue" // leave the queue
	LeaseRelease LeaseChange = "release" // release the slot
	LeaseRequeue LeaseChange = "requeue" // release the slot and join the queue
)

// Effect is an action outside of the store. It follows a commit.
type Effect struct {
	Kind EffectKind `json:"kind"`
	// Execution is the name of the execution to start or stop.
	Execution string `json:"execution,omitempty"`
	// Token, Step and Generation identify the token to complete.
	Token      string `json:"token,omitempty"`
	Step       Step   `json:"step,omitempty"`
	Generation int    `json:"generation,omitempty"`
	// Action is the action of the job to carry out. At is when a run that has not ended got it;
	// zero for an action that follows the end of the run.
	Action spec.EndAction `json:"action,omitempty"`
	At     time.Time      `json:"at,omitzero"`
	// Tries counts the tries of an action whose receiver has not taken it, Answer says why the last
	// one was not taken, and TriedAt when. They are zero before the first of them.
	Tries   int       `json:"tries,omitempty"`
	Answer  string    `json:"answer,omitempty"`
	TriedAt time.Time `json:"triedAt,omitzero"`
}

// EffectKind is the kind of an effect.
type EffectKind string

// The kinds of effects.
const (
	EffectStart    EffectKind = "start-execution"
	EffectComplete EffectKind = "complete-token"
	EffectStop     EffectKind = "stop-execution"
	EffectAct      EffectKind = "act"
	EffectFollow   EffectKind = "follow"
	// EffectChildren counts an ended child, or creates and cancels the children of a run. It is not
	// recorded: the check of a parent repeats it.
	EffectChildren EffectKind = "children"
)

// EffectSlack is how long an effect may take before the sweep repeats it. stateSlack is the
// time between the limit of a state and the sweep's check.
const (
	EffectSlack = 30 * time.Second
	stateSlack  = time.Minute
)

// Decide applies the fact to the run at the time now. An error is either a fault, which refuses
// the fact, or a defect of this package. In both cases there is nothing to commit.
func Decide(r Run, f Fact, now time.Time) (Decision, error) {
	d := &draft{Run: r, now: now.UTC(), actor: actorOf(f, r)}
	if own, ok := f.(fromExecution); ok && own.acted(r) {
		d.effectsDone()
	}
	if err := f.apply(d); err != nil {
		return Decision{}, err
	}
	if d.illegal != nil {
		return Decision{}, fmt.Errorf("cannot apply %T: %w", f, d.illegal)
	}
	d.settleReservation(r.State)
	if !d.changed {
		return Decision{Run: r}, nil
	}
	if err := checkScopes(r.Reservation, d.Reservation); err != nil {
		return Decision{}, fmt.Errorf("cannot apply %T: %w", f, err)
	}
	d.Execution.Pending = append(slices.Clone(d.Execution.Pending), d.effects...)
	d.Execution.Pending = slices.DeleteFunc(d.Execution.Pending, func(e Effect) bool { return e.Kind == EffectChildren })
	switch f.(type) {
	case RepairFailed, DeletionFailed, Relabelled, PinChanged, FollowerAdded, ActionUntaken: // these facts are not about the execution
	default:
		d.Execution.Repairs = 0
		d.Execution.ActBy = actBy(d.Run, d.now)
	}
	return Decision{
		Run: d.Run, Events: d.events, Effects: d.effects, Refusals: d.refusals,
		Lease: leaseChange(r.Slot, d.Slot), JobLease: leaseChange(r.JobSlot, d.JobSlot), KeyLease: leaseChange(r.KeySlot, d.KeySlot),
		Heartbeat: d.heartbeat, Ledger: cmp.Or(ledgerChange(r.Reservation, d.Run, d.now), shadowCharge(r, d.Run, d.now)), Changed: true,
	}, nil
}

// draft is a record to which a fact is being applied.
type draft struct {
	Run
	now        time.Time
	actor      Actor // the actor of the events
	events     []Event
	effects    []Effect
	refusals   []*fault.Fault
	heartbeat  HeartbeatChange
	changed    bool
	usageFinal bool // no attempt can add to the recorded usage of the reservation
	illegal    error
}

// enter changes the state. No other function of a draft writes it.
func (d *draft) enter(next State, message string, why *fault.Fault) {
	from := d.State
	if !from.CanBecome(next) {
		d.illegal = IllegalTransition{from, next}
		return
	}
	d.Tally = d.Tally.afterTransition(d.Run, next, d.now)
	happened := d.transitionEvent(next)
	d.State, d.EnteredAt = next, d.now
	d.Spent.Evaluations = 0
	d.emit(Event{Type: happened, From: from, Message: message, Fault: why})
}

// emit appends an event about the current record.
func (d *draft) emit(e Event) {
	d.changed = true
	d.EventCount++
	e.Seq, e.At, e.State, e.Attempt, e.Actor = d.EventCount, d.now, d.State, d.Attempt.Number, d.actor
	if e.From == "" && e.Seq > 1 {
		e.From = d.State
	}
	e.ID = eventID(d.Run, e.Seq, e.At)
	d.Tally.count(e)
	d.events = append(d.events, e)
}

// enterTokenState sends the execution into a token state, and completes the token of the current
// one.
func (d *draft) enterTokenState(step Step) {
	d.completeToken()
	d.Wait = Wait{Generation: d.Wait.Generation + 1, Step: step}
	d.changed = true
}

// completeToken completes the token of the execution's current state, if it has one.
func (d *draft) completeToken() {
	if d.Wait.Token != "" {
		d.effects = append(d.effects, Effect{
			Kind: EffectComplete, Token: d.Wait.Token, Step: d.Wait.Step, Generation: d.Wait.Generation,
		})
		d.changed = true
	}
	d.Wait.Token, d.Wait.Step = "", ""
}

// finish ends the run.
func (d *draft) finish(end State, message string, why *fault.Fault) {
	d.completeToken()
	d.closeHeartbeat()
	d.Fault = why
	d.noteAllowedTime(why)
	d.Slot.State, d.Slot.Since = "", time.Time{}
	d.JobSlot.State, d.JobSlot.Since = "", time.Time{}
	d.KeySlot.State, d.KeySlot.Since = "", time.Time{}
	d.enter(end, message, why)
	d.EndedAt = d.now
	if d.Attempt.Number > 0 {
		d.Tally.Checked += d.metAfter()
	}
	d.follow()
	d.notifyParent()
	d.endActions()
	d.setRetention(d.stays(), time.Time{})
}

// endAttempt ends the attempt and enters Terminating, which cleans up after it.
func (d *draft) endAttempt(outcome Outcome, message string, why *fault.Fault) {
	d.completeToken()
	d.closeHeartbeat()
	if d.Slot.State == platform.SlotQueued {
		d.Slot.State, d.Slot.Since = "", time.Time{}
	}
	d.noteExpectedTime()
	d.Attempt.Outcome, d.Attempt.EndedAt = outcome, d.now
	d.Fault = why
	d.enter(Terminating, message, why)
	if d.illegal == nil {
		d.events[len(d.events)-1].Exit = d.Attempt.Exit
	}
}

// closeHeartbeat removes the heartbeat item if one is open. Later calls of the attempt are not
// heartbeats.
func (d *draft) closeHeartbeat() {
	if d.Attempt.WorkerID != "" && d.Attempt.Outcome == "" {
		d.heartbeat.Close = true
	}
}

// actBy returns the time by which the execution must have acted on the record.
func actBy(r Run, now time.Time) time.Time {
	switch {
	case len(r.Execution.Pending) > 0 && r.Fan != nil && r.State == Running:
		return sooner(now.Add(EffectSlack), r.Fan.CheckBy) // each end of a child is a commit
	case len(r.Execution.Pending) > 0:
		return now.Add(EffectSlack)
	case r.State.Terminal() && r.AnswerDue().IsZero():
		return time.Time{}
	case r.State.Terminal():
		return later(r.AnswerDue(), now.Add(dispatchSlack))
	}
	if r.Work.Inference != nil {
		return dispatchBy(r, now)
	}
	if r.Fan != nil && r.State == Running {
		return r.Fan.CheckBy
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

// dispatchSlack is the time of a dispatcher for a step of an inference run that waits for
// nothing. After it the sweep repeats the step. It is longer than an engine may keep the slot
// of an attempt.
const dispatchSlack = 30 * time.Second

// dispatchBy is actBy for inference runs, which have a dispatcher instead of an execution.
func dispatchBy(r Run, now time.Time) time.Time {
	switch {
	case r.Queued():
		return r.QueueBy() // the sweep ends the wait
	case r.State == ContainerCreating:
		return r.Attempt.StartBy.Add(dispatchSlack)
	case r.State == Running && r.Cancel == nil:
		return r.RunBy().Add(dispatchSlack)
	}
	return now.Add(dispatchSlack)
}

// leaseChange returns how the count of the pool changes between the two slots.
func leaseChange(before, after platform.Slot) LeaseChange {
	had, has := before.Counted(), after.Counted()
	switch {
	case had == has:
		return ""
	case had == platform.SlotQueued && has == platform.SlotHeld:
		return LeaseGrant
	case had == platform.SlotQueued:
		return LeaseDequeue
	case had == platform.SlotHeld && has == platform.SlotQueued:
		return LeaseRequeue
	case had == platform.SlotHeld:
		return LeaseRelease
	case has == platform.SlotQueued:
		return LeaseEnqueue
	}
	return LeaseTake
}
