package capacity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// lookupAge is how long a process may use the record of a pool that it has read.
const lookupAge = time.Second

// drains are the times of the last drain and resume, as seen by the operator. The zero value
// means no drain yet.
type drains struct {
	// beganAt is when the last drain was requested, and drainedAt when it was acknowledged.
	beganAt, drainedAt time.Time
	// resumedAt is when the resume was requested, and doneAt when it was acknowledged. They are
	// zero until then.
	resumedAt, DoneAt time.Time
}

// Resize is a change of the pool's limits, as seen by the operator.
type Resize struct {
	Limit, queueLimit int
	// DoneAt is when the change was acknowledged; zero until then.
	DoneAt time.Time
}

// Resize changes the limit of the pool, and sometimes that of its queue.
func (w *Capacity) Resize() {
	r := Resize{Limit: 1 + w.Random.IntN(2*w.Config.MaxMachines)}
	if w.Chance(0.3) || w.Contended() && w.Chance(0.5) {
		r.queueLimit = 1 + w.Random.IntN(3)
	}
	w.Resizes = append(w.Resizes, r)
	w.Persist(fmt.Sprintf("limits of the pool: %+v", r), func(ctx context.Context) error {
		_, _, err := w.System.Pools.Put(ctx, harness.Client, w.Config.Pool, pools.Definition{Limit: r.Limit, QueueLimit: &r.queueLimit}, change.Precondition{})
		return err
	})
	w.Resizes[len(w.Resizes)-1].DoneAt = w.Time.Now
}

// inForce returns the limits of the pool that a call may use now: the last acknowledged limits,
// the limits of a pending change, and earlier limits while processes may still use them.
func (w *Capacity) inForce() []Resize {
	first := 0
	for i, r := range w.Resizes {
		if !r.DoneAt.IsZero() && r.DoneAt.Add(w.lookupSlack()).Before(w.Time.Now) {
			first = i
		}
	}
	return w.Resizes[first:]
}

// Limits returns the smallest and largest limit of the pool that a call may use now.
func (w *Capacity) Limits() (least, most int) {
	forced := w.inForce()
	least, most = forced[0].Limit, forced[0].Limit
	for _, r := range forced[1:] {
		least, most = min(least, r.Limit), max(most, r.Limit)
	}
	return least, most
}

// CheckLimit checks that a run gets a slot of the pool only within its limit. Lowering a limit
// ends no run.
func (w *Capacity) CheckLimit(r *run.Run) {
	if p := w.poolOf(r.Slot.Pool); p != w.Pools[0] {
		if held := w.PoolUse()[p.Id].Held; p.Definition.Limit > 0 && held > p.Definition.Limit {
			w.Fail("%s got one of %d held slots of %s, want at most %d", r.ID, held, p.Id, p.Definition.Limit)
		}
		return
	}
	if _, most := w.Limits(); most > 0 {
		if held := w.PoolUse()[w.Config.Pool].Held; held > most {
			w.Fail("%s got one of %d held slots, want at most %d", r.ID, held, most)
		}
	}
}

// CheckRoom checks that the pool accepts no new run after its queue has been full long enough
// for every process to know.
func (w *Capacity) CheckRoom(r *run.Run) {
	if r.Slot.Pool != w.Config.Pool {
		return // the run of a replica
	}
	most := 0
	for _, one := range w.inForce() {
		if one.queueLimit == 0 {
			return
		}
		most = max(most, one.queueLimit)
	}
	queued, since := 0, w.Time.Now.Add(-w.lookupSlack()-countAge-w.Lag)
	for _, other := range w.Records.Ordered {
		if other.ID != r.ID && other.Slot.Pool == w.Config.Pool && w.waitsLong(other, since) {
			queued++
		}
	}
	if r.Missed == nil && r.Slot.State == "" && queued >= most {
		w.Fail("%s was accepted with %d runs in the queue of its pool, want at most %d", r.ID, queued, most)
	}
}

// QueueLimited reports whether the queue of the pool may have a limit.
func (w *Capacity) QueueLimited() bool {
	return slices.ContainsFunc(w.inForce(), func(r Resize) bool { return r.queueLimit > 0 })
}

// countAge is how long a process may use the length of a queue that it has counted.
const countAge = 2 * time.Second

// lookupSlack is how long after a change of the pool a grant may still use the older record.
func (w *Capacity) lookupSlack() time.Duration {
	slack := lookupAge + 2*w.Plan.Skew
	if w.Plan.SlowCommits+w.Plan.ServiceFaults > 0 {
		slack += 2 * harness.Slowest
	}
	return slack
}

// Drain drains the pool, sometimes with a deadline.
func (w *Capacity) Drain() {
	var deadline *int
	if w.Chance(0.4) {
		deadline = new(w.Random.IntN(600))
	}
	w.drains = drains{beganAt: w.Time.Now}
	w.Persist("drain of the pool", func(ctx context.Context) error {
		_, err := w.System.Pools.Drain(ctx, harness.Client, w.Config.Pool, deadline, change.Precondition{})
		return err
	})
	w.drains.drainedAt = w.Time.Now
}

// Undrain resumes the pool.
func (w *Capacity) Undrain() {
	w.drains.resumedAt = w.Time.Now
	w.Persist("resume of the pool", func(ctx context.Context) error {
		_, err := w.System.Pools.Resume(ctx, harness.Client, w.Config.Pool, change.Precondition{})
		return err
	})
	w.drains.DoneAt = w.Time.Now
}

// Draining reports whether the pool may be draining now.
func (w *Capacity) Draining() bool {
	return !w.drains.beganAt.IsZero() && w.drains.DoneAt.IsZero()
}

// CheckDrained checks that a draining pool grants no slot. A grant may have used an older
// record of the pool.
func (w *Capacity) CheckDrained(r *run.Run) {
	if at := w.drains.drainedAt; r.Slot.Pool == w.Config.Pool && !at.IsZero() && w.drains.resumedAt.IsZero() && at.Add(w.lookupSlack()).Before(w.Time.Now) {
		w.Fail("%s got a slot of the pool, which drains since %s", r.ID, at.Sub(harness.Start))
	}
}

// CheckEviction checks that an attempt is evicted only after the deadline of a drain, and that
// its end does not fail the run.
func (w *Capacity) CheckEviction(before, r *run.Run) {
	if was := before.Attempt.Eviction; was == nil {
		w.Attempt(r.TaskID, r.Attempt.Number).Evicted = true
		if w.drains.beganAt.IsZero() {
			w.Fail("attempt %d of %s is asked to end, and its pool does not drain", r.Attempt.Number, r.ID)
		}
	} else if *was != *r.Attempt.Eviction {
		w.Fail("the request that attempt %d of %s ends changed", r.Attempt.Number, r.ID)
	}
	if r.State == run.Failed && r.Fault != nil && r.Fault.Code == fault.PoolDrained {
		w.Fail("%s failed, because its pool drains", r.ID)
	}
}
