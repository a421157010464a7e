package run

import (
	"cmp"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/forecast"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Room says which of the slots that a run needs are free, as of the last commit.
type Room struct {
	// PoolFull: the pool has no free slot, other runs are queued for one, or it grants none.
	// KeyFull is the same for the run's key.
	PoolFull, KeyFull bool
	// KeyQueued is the number of runs that are queued for a slot of the key.
	KeyQueued int
}

// Admission is the decision about a run that requests slots.
type Admission string

// The values of Admission.
const (
	AdmitStart    Admission = "start"     // take the slots and start
	AdmitQueue    Admission = "queue"     // take the slot of the key and queue for the pool
	AdmitKeyQueue Admission = "key_queue" // queue for a slot of the key
	AdmitReplace  Admission = "replace"   // replace the first queued run of the key, which is skipped
	AdmitSkip     Admission = "skip"      // skip the run in favor of the queued runs of its key
	AdmitReject   Admission = "reject"    // refuse the request; a firing is skipped
)

// Admit decides about all limits that apply before a run starts: those of its key, of the key's
// queue, and of its pool. The slot of a job's maxConcurrentRuns is a constraint. It is
// evaluated once the run has its other slots.
func (r Run) Admit(room Room) Admission {
	c := r.Concurrency
	switch {
	case !r.needsKey() || !room.KeyFull:
	case c.QueueLimit == 0 || room.KeyQueued < c.QueueLimit:
		return AdmitKeyQueue
	case c.Overflow == spec.OverflowKeepNewest:
		return AdmitReplace
	case c.Overflow == spec.OverflowKeepOldest:
		return AdmitSkip
	default:
		return AdmitReject
	}
	if room.PoolFull {
		return AdmitQueue
	}
	return AdmitStart
}

// needsKey reports whether the run has a key, but no slot of it and no place in its queue.
func (r Run) needsKey() bool { return r.Concurrency != nil && r.KeySlot.State == "" }

// AwaitsKey reports whether the run is in its key's queue.
func (r Run) AwaitsKey() bool { return r.KeySlot.State == platform.SlotQueued && r.State == Pending }

// keySlot returns a slot of the run's key with the state and time.
func (r Run) keySlot(state platform.SlotState, since time.Time) platform.Slot {
	c := r.Concurrency
	return platform.Slot{
		Pool: platform.KeyPool(c.Key), Limit: c.Limit, State: state, Since: since,
		Priority: r.Priority, Round: 1, QueueLimit: c.QueueLimit, // the queue of a key has only one round
	}
}

// JoinsAtOnce reports whether the commit that creates the run also takes its slot of the key or its
// place in the key's queue. This is necessary if a full queue refuses the request. Otherwise the
// run does so when it is admitted.
func (r Run) JoinsAtOnce(now time.Time) bool {
	return r.Concurrency != nil && r.Concurrency.QueueLimit > 0 && !r.ScheduledAt.After(now)
}

// Joined returns a new run with the slot or place that the commit of its creation takes: a slot
// of its key (AdmitStart, AdmitQueue), or a place in the key's queue (AdmitKeyQueue,
// AdmitReplace).
func (r Run) Joined(as Admission, now time.Time) Run {
	switch r.KeySlot = r.keySlot(platform.SlotHeld, now.UTC()); as {
	case AdmitReplace:
		r.KeySlot.QueueLimit = 0
		fallthrough
	case AdmitKeyQueue:
		r.KeySlot.State = platform.SlotQueued
	}
	return r
}

// takeKey takes the slot of the run's key together with that of its pool. limit is the current
// limit of the key; 0 means that of the run.
func (d *draft) takeKey(limit int) {
	if d.needsKey() {
		d.KeySlot = d.keySlot(platform.SlotHeld, d.now)
		d.KeySlot.Limit = cmp.Or(limit, d.KeySlot.Limit)
	}
}

// KeyEnqueued: the run's key has no free slot, and the run joins its queue.
type KeyEnqueued struct {
	// Replaces: another run leaves the queue in the same commit, so the queue limit does not
	// apply.
	Replaces bool
	// Prediction is as in Admitted.
	Prediction *forecast.Prediction
}

func (KeyEnqueued) acted(Run) bool { return true }

func (f KeyEnqueued) apply(d *draft) error {
	if !d.AwaitsAdmission() || !d.needsKey() {
		return nil
	}
	d.KeySlot = d.keySlot(platform.SlotQueued, d.EnteredAt)
	if f.Replaces {
		d.KeySlot.QueueLimit = 0
	}
	d.predict(f.Prediction)
	d.enterTokenState(StepQueued)
	d.emitKeyQueued()
	return nil
}

func (d *draft) emitKeyQueued() {
	d.emit(Event{Type: EventQueued, Message: "waits for a slot of key " + d.Concurrency.Key})
}

// KeyGranted: the run is the first in the queue of its key, and the commit takes a free slot of
// the key. The run then joins the queue of its pool.
type KeyGranted struct {
	Pool  string
	Limit int
	Queue platform.QueueState
	// KeyLimit is the limit of the key in the job's newest definition; 0 keeps that of the run.
	KeyLimit int
}

func (f KeyGranted) apply(d *draft) error {
	if !d.AwaitsKey() {
		return nil
	}
	since := d.KeySlot.Since
	d.KeySlot.State, d.KeySlot.Since, d.changed = platform.SlotHeld, d.now, true
	d.KeySlot.Limit = cmp.Or(f.KeyLimit, d.KeySlot.Limit)
	d.enqueue(f.Pool, f.Limit, since, f.Queue)
	return nil
}

// Overflowed describes why a run was skipped: the queue of its key was full.
type Overflowed struct {
	Key string `json:"key"`
	// Rule is the rule that was applied.
	Rule spec.Overflow `json:"rule"`
	// By is the run that replaced this one, or the first queued run of the key.
	By string `json:"by,omitempty"`
	// Queued is the number of runs that were queued for the key.
	Queued int `json:"queued"`
}

// String describes the overflow.
func (o Overflowed) String() string {
	switch o.Rule {
	case spec.OverflowKeepNewest:
		return fmt.Sprintf("the newer run %s of key %s replaces it: %d runs were queued", o.By, o.Key, o.Queued)
	case spec.OverflowKeepOldest:
		return fmt.Sprintf("%d runs of key %s are queued, the first is %s", o.Queued, o.Key, o.By)
	}
	return fmt.Sprintf("the queue of key %s is full: %d runs are waiting", o.Key, o.Queued)
}

// KeyOverflowed: the queue of the run's key is full. The run is skipped: it was the first in
// the queue and is replaced, or it cannot join.
type KeyOverflowed struct {
	// By and Queued are as in Overflowed.
	By     string
	Queued int
}

// acted is true for a run that tries to join. A replaced run is already in the queue.
func (KeyOverflowed) acted(r Run) bool { return r.State == Pending && r.needsKey() }

func (f KeyOverflowed) apply(d *draft) error {
	if d.State != Pending || d.Concurrency == nil || d.KeySlot.State == platform.SlotHeld || d.Attempt.Number > 0 {
		return nil
	}
	rule := d.Concurrency.Overflow
	if d.KeySlot.State == platform.SlotQueued { // the rule of the run that replaces this one
		rule = spec.OverflowKeepNewest
	} else if rule == "" {
		rule = spec.OverflowReject
	}
	d.skipOverflowed(Overflowed{Key: d.Concurrency.Key, Rule: rule, By: f.By, Queued: f.Queued})
	return nil
}

// skipOverflowed skips the run with the transitions of a violated constraint.
func (d *draft) skipOverflowed(o Overflowed) {
	d.Overflowed = &o
	d.enter(ConditionPending, "", nil)
	d.enter(ConditionRunning, "", nil)
	d.enter(ActionPending, string(spec.ActionSkip), nil)
	d.Acting = &Acting{Type: spec.ActionSkip, At: d.now}
	d.enter(ActionRunning, string(spec.ActionSkip), nil)
	d.Skipped = true
	d.finish(Completed, "skipped: "+o.String(), nil)
}

// NewOverflowed returns a run that is skipped at its creation. See KeyOverflowed.
func NewOverflowed(r Run, f KeyOverflowed, now time.Time) Decision {
	first := New(r, now)
	d := &draft{Run: first.Run, events: first.Events, now: now.UTC(), actor: r.creator()}
	d.Execution = Execution{} // a skipped run needs no execution
	d.skipOverflowed(Overflowed{Key: r.Concurrency.Key, Rule: r.Concurrency.Overflow, By: f.By, Queued: f.Queued})
	return d.created()
}
