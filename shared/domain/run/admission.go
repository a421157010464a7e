package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/forecast"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// New returns an accepted run with its first event. The caller sets identity, work, policy,
// prediction, the reservation of the first attempt, and the slot of a key with Joined. New sets
// the rest. A run whose ScheduledAt is after now is PreRun.
func New(r Run, now time.Time) Decision {
	now = now.UTC()
	r.CreatedAt, r.EnteredAt = now, now
	r.State, r.Version, r.EventCount = Pending, 0, 0
	if r.ScheduledAt.After(now) {
		r.State = PreRun
	}
	r.Execution = Execution{Start: 1}
	d := &draft{Run: r, now: now, actor: r.creator()}
	d.emit(Event{Type: EventAccepted})
	if d.AwaitsKey() {
		d.enterTokenState(StepQueued)
		d.predict(d.Prediction)
		d.emitKeyQueued()
	}
	if r.HasExecution() {
		d.effects = []Effect{{Kind: EffectStart, Execution: ExecutionName(r.Ref(), 1)}}
		d.Execution.Pending = d.effects
	}
	d.Execution.ActBy = now.Add(EffectSlack)
	return Decision{
		Run: d.Run, Events: d.events, Effects: d.effects, KeyLease: leaseChange(platform.Slot{}, d.KeySlot),
		Ledger: ledgerChange(nil, d.Run, now), Changed: true,
	}
}

// NewWith is like New, but the commit that creates the run also applies the facts, in order.
// The run has no execution. At most one of the facts changes the heartbeat item.
func NewWith(r Run, now time.Time, facts ...Fact) (Decision, error) {
	d := New(r, now)
	for _, f := range facts {
		next, err := Decide(d.Run, f, now)
		if err != nil {
			return Decision{}, err
		}
		if !next.Changed {
			continue
		}
		next.Events = append(d.Events, next.Events...)
		next.Lease, next.JobLease = leaseChange(platform.Slot{}, next.Run.Slot), leaseChange(platform.Slot{}, next.Run.JobSlot)
		next.KeyLease = leaseChange(platform.Slot{}, next.Run.KeySlot)
		if next.Heartbeat == (HeartbeatChange{}) {
			next.Heartbeat = d.Heartbeat
		}
		next.Ledger = ledgerChange(nil, next.Run, now.UTC())
		d = next
	}
	return d, nil
}

// Due: the time that PreRun or Retrying waits for has come. It changes nothing in other states
// or before that time.
type Due struct {
	// Newest is a run of the job's newest definition. A run that leaves PreRun takes over its
	// version, work, policy, constraints, actions, pool and digest. nil keeps those of the run.
	Newest *Run
}

func (Due) acted(Run) bool { return true }

func (f Due) apply(d *draft) error {
	due := (d.State == PreRun && !d.now.Before(d.ScheduledAt)) ||
		(d.State == Retrying && !d.now.Before(d.RetryAt))
	if due && d.State == PreRun && f.Newest != nil {
		d.takeOver(*f.Newest)
	}
	if due {
		d.enterPool()
		d.RetryAt = time.Time{}
		d.enter(Pending, "", nil)
	}
	return nil
}

// takeOver replaces the parts of the run that come from its job. Its parameters and overrides
// stay.
func (d *draft) takeOver(newest Run) {
	before := d.Work
	d.Work, d.Policy, d.Constraints, d.Actions, d.JobVersion = newest.Work, newest.Policy, newest.Constraints, newest.Actions, newest.JobVersion
	d.Work.Fan = newest.Work.Fan.Requested(before.Fan)
	d.Priority, d.Concurrency = d.Override.Apply(newest.Priority, newest.Concurrency)
	d.Work.Program = d.Work.Program.With(d.Parameters)
	d.Inputs = newest.Inputs
	d.Slot.Pool, d.PayloadDigest = newest.Slot.Pool, newest.PayloadDigest
}

// Admitted: the pool has a free slot, and the commit takes it. Limit is the pool's current
// limit.
type Admitted struct {
	Pool  string
	Limit int
	// KeyLimit is as in KeyGranted.
	KeyLimit int
	// Prediction is the predicted start of the attempt; nil if it is unknown.
	Prediction *forecast.Prediction
}

func (Admitted) acted(Run) bool { return true }

func (f Admitted) apply(d *draft) error {
	if !d.AwaitsAdmission() || d.endAtDeadline("before it was admitted") {
		return nil
	}
	d.takeKey(f.KeyLimit)
	d.Slot = d.SlotOf(f.Pool, f.Limit)
	d.predictUnlessWaited(f.Prediction)
	d.takeSlot()
	return nil
}

// Enqueued: the pool has no free slot, and the run joins its queue. The commit takes a slot of
// the run's key if the run needs one.
type Enqueued struct {
	Pool  string
	Limit int
	// Queue is the queue as it was read.
	Queue platform.QueueState
	// KeyLimit is as in KeyGranted.
	KeyLimit int
	// Prediction is as in Admitted.
	Prediction *forecast.Prediction
}

func (Enqueued) acted(Run) bool { return true }

func (f Enqueued) apply(d *draft) error {
	if !d.AwaitsAdmission() || d.endAtDeadline("before it was admitted") {
		return nil
	}
	d.takeKey(f.KeyLimit)
	d.predictUnlessWaited(f.Prediction)
	d.enqueue(f.Pool, f.Limit, d.EnteredAt, f.Queue)
	d.enterTokenState(StepQueued)
	return nil
}

// enqueue adds the run to the queue of its pool.
func (d *draft) enqueue(pool string, limit int, since time.Time, q platform.QueueState) {
	d.Slot = d.SlotOf(pool, limit).Joining(q, since)
	d.Slot.State = platform.SlotQueued
	d.emit(Event{Type: EventQueued, Message: "waits for a slot of pool " + pool})
}

// Granted: the run is the first in its queue, and a slot is free. Limit is the pool's current
// limit, which may differ from that at enqueueing; 0 means no limit. App and StartAt are the
// permit of the start; StartAt is zero if it needs no permit. The start limit counts from
// StartAt.
type Granted struct {
	Limit   int
	App     string
	StartAt time.Time
}

func (f Granted) apply(d *draft) error {
	if !d.Queued() || d.State != ContainerCreating && d.endAtDeadline("in a queue") {
		return nil
	}
	d.Slot.Limit = f.Limit
	if d.State != ContainerCreating {
		d.takeSlot()
	} else {
		d.Slot.State, d.Slot.Since = platform.SlotHeld, d.now
		d.enterTokenState(StepContainerCreating)
	}
	if d.State == ContainerCreating {
		d.Attempt.App, d.Attempt.StartAt = f.App, f.StartAt
		d.Attempt.StartBy = later(f.StartAt, d.now).Add(d.Policy.StartTimeout)
	}
	return nil
}

// requeue returns the slot of a throttled start. The run is queued again at its earlier place.
func (d *draft) requeue() {
	since := d.Slot.RequestedAt
	if since.IsZero() {
		since = d.Attempt.IntentAt
	}
	d.Slot.State, d.Slot.Since = platform.SlotQueued, since
	d.Attempt.App, d.Attempt.StartAt, d.Attempt.BackoffUntil = "", time.Time{}, time.Time{}
	d.enterTokenState(StepQueued)
}

// takeSlot gives the run its slot. A first attempt with constraints becomes ConditionPending,
// and begins once they are evaluated.
func (d *draft) takeSlot() {
	d.Slot.RequestedAt = d.EnteredAt
	if d.Slot.State == platform.SlotQueued {
		d.Slot.RequestedAt = d.Slot.Since
	}
	d.Slot.State, d.Slot.Since = platform.SlotHeld, d.now
	d.changed = true
	if d.State == Pending && d.Attempt.Number == 0 && d.Constraints.BeforeRun() {
		d.enter(ConditionPending, "", nil)
		d.completeToken()
		return
	}
	d.beginAttempt()
}

// beginAttempt records the intent: a new attempt number and machine name. It clears Generation,
// because the work of an engine was charged to the earlier attempt. After the deadline it ends the
// run instead.
func (d *draft) beginAttempt() {
	if d.endAtDeadline("before its attempt began") {
		return
	}
	number := d.Attempt.Number + 1
	d.Attempt = Attempt{
		Number: number, MachineName: MachineName(d.Ref(), number),
		IntentAt: d.now, StartBy: d.now.Add(d.Policy.StartTimeout),
		HeartbeatsSwept: !d.HasExecution(),
	}
	d.Generation = nil
	d.enterTokenState(StepContainerCreating)
	d.enter(ContainerCreating, "", nil)
}

// CancelRequested: a client requested the cancellation of the run. It is idempotent; only the
// first request is recorded. A run that has ended does not change, unless it begins a graph: then
// what comes after it is cancelled.
type CancelRequested struct {
	// By is the subject of the client, Scopes its permissions.
	By     string
	Scopes []string
	Reason string
}

func (f CancelRequested) apply(d *draft) error {
	if d.BeginsGraph() {
		d.cancelRest(f.Reason)
	}
	if d.State.Terminal() || d.Cancel != nil {
		return nil
	}
	d.Cancel = &CancelRequest{At: d.now, By: f.By, Reason: f.Reason}
	d.emit(Event{Type: EventCancelRequested, Message: f.Reason})
	why := d.cancelFault()
	switch d.State {
	case PreRun, Retrying:
		if d.HasExecution() {
			d.effects = append(d.effects, Effect{
				Kind: EffectStop, Execution: ExecutionName(d.Ref(), d.Execution.Start),
			})
		}
		d.finish(Cancelled, why.Message, why)
	case ContainerCreating:
		d.usageFinal = true // no engine has received a request
		d.endAttempt(OutcomeCancelled, why.Message, why)
	case Running:
		if d.Fan != nil {
			d.stopFan(fan.StopCancelled)
			break
		}
		if d.Attempt.WorkerID != "" {
			d.heartbeat.Cancel = &f.Reason
		}
		d.enterTokenState(StepCancelling)
	case Terminating:
	default:
		d.finish(Cancelled, why.Message, why)
	}
	return nil
}

func (d *draft) cancelFault() *fault.Fault {
	if d.Cancel.Reason == "" {
		return fault.New(fault.Cancelled, "cancelled on request")
	}
	return fault.New(fault.Cancelled, "cancelled on request: %s", d.Cancel.Reason)
}

// With returns the run with an override.
func (r Run) With(o spec.Override) Run {
	r.Override = o
	r.Priority, r.Concurrency = o.Apply(r.Priority, r.Concurrency)
	return r
}

// fairKey returns the Slot.Key of the run: its concurrency key, or the pool of its job. It is
// empty for a run without both, which has a turn of its own.
func (r Run) fairKey() string {
	switch {
	case r.Concurrency != nil:
		return r.Concurrency.Key
	case r.JobID != "":
		return platform.JobPool(r.JobID)
	}
	return ""
}

// SlotOf returns the slot that the run requests from a pool, without a state.
func (r Run) SlotOf(pool string, limit int) platform.Slot {
	return platform.Slot{Pool: pool, Limit: limit, Priority: r.Priority, Key: r.fairKey()}
}
