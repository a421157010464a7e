package simulation

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
	resumedAt, doneAt time.Time
}

// resize is a change of the pool's limits, as seen by the operator.
type resize struct {
	limit, queueLimit int
	// doneAt is when the change was acknowledged; zero until then.
	doneAt time.Time
}

// startOperator schedules, in some worlds, an operator who drains the pool or changes its
// limits.
func (w *world) startOperator() {
	w.resizes = []resize{{limit: w.Config.MaxMachines, doneAt: harness.Start}}
	if w.Mixed() {
		w.Time.After(0, w.operateMixed)
		return
	}
	if w.Warmed() {
		w.Time.After(0, w.operateWarm)
		return
	}
	if w.Contended() {
		w.Time.After(0, w.operateContended)
		return
	}
	if !w.Chance(0.4) {
		return
	}
	resizes := w.Config.MaxMachines > 0 && w.Chance(0.6)
	w.Time.After(w.UpTo(w.Longest/2), func() {
		for range 1 + w.Random.IntN(4) {
			if resizes && w.Chance(0.7) {
				w.resize()
			} else {
				w.drain()
				w.Time.Sleep(w.UpTo(w.Longest / 2))
				w.undrain()
			}
			w.Time.Sleep(w.UpTo(w.Longest / 2))
		}
	})
}

// resize changes the limit of the pool, and sometimes that of its queue.
func (w *world) resize() {
	r := resize{limit: 1 + w.Random.IntN(2*w.Config.MaxMachines)}
	if w.Chance(0.3) || w.Contended() && w.Chance(0.5) {
		r.queueLimit = 1 + w.Random.IntN(3)
	}
	w.resizes = append(w.resizes, r)
	w.jobCall(fmt.Sprintf("limits of the pool: %+v", r), func(ctx context.Context) error {
		_, _, err := w.System.Pools.Put(ctx, harness.Client, w.Config.Pool, pools.Definition{Limit: r.limit, QueueLimit: &r.queueLimit}, change.Precondition{})
		return err
	})
	w.resizes[len(w.resizes)-1].doneAt = w.Time.Now
}

// inForce returns the limits of the pool that a call may use now: the last acknowledged limits,
// the limits of a pending change, and earlier limits while processes may still use them.
func (w *world) inForce() []resize {
	first := 0
	for i, r := range w.resizes {
		if !r.doneAt.IsZero() && r.doneAt.Add(w.lookupSlack()).Before(w.Time.Now) {
			first = i
		}
	}
	return w.resizes[first:]
}

// limits returns the smallest and largest limit of the pool that a call may use now.
func (w *world) limits() (least, most int) {
	forced := w.inForce()
	least, most = forced[0].limit, forced[0].limit
	for _, r := range forced[1:] {
		least, most = min(least, r.limit), max(most, r.limit)
	}
	return least, most
}

// checkLimit checks that a run gets a slot of the pool only within its limit. Lowering a limit
// ends no run.
func (w *world) checkLimit(r *run.Run) {
	if p := w.poolOf(r.Slot.Pool); p != w.pools[0] {
		if held := w.poolUse()[p.id].held; p.definition.Limit > 0 && held > p.definition.Limit {
			w.Fail("%s got one of %d held slots of %s, want at most %d", r.ID, held, p.id, p.definition.Limit)
		}
		return
	}
	if _, most := w.limits(); most > 0 {
		if held := w.poolUse()[w.Config.Pool].held; held > most {
			w.Fail("%s got one of %d held slots, want at most %d", r.ID, held, most)
		}
	}
}

// checkRoom checks that the pool accepts no new run after its queue has been full long enough
// for every process to know.
func (w *world) checkRoom(r *run.Run) {
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

// queueLimited reports whether the queue of the pool may have a limit.
func (w *world) queueLimited() bool {
	return slices.ContainsFunc(w.inForce(), func(r resize) bool { return r.queueLimit > 0 })
}

// countAge is how long a process may use the length of a queue that it has counted.
const countAge = 2 * time.Second

// lookupSlack is how long after a change of the pool a grant may still use the older record.
func (w *world) lookupSlack() time.Duration {
	slack := lookupAge + 2*w.Plan.Skew
	if w.Plan.SlowCommits+w.Plan.ServiceFaults > 0 {
		slack += 2 * harness.Slowest
	}
	return slack
}

// drain drains the pool, sometimes with a deadline.
func (w *world) drain() {
	var deadline *int
	if w.Chance(0.4) {
		deadline = new(w.Random.IntN(600))
	}
	w.drains = drains{beganAt: w.Time.Now}
	w.jobCall("drain of the pool", func(ctx context.Context) error {
		_, err := w.System.Pools.Drain(ctx, harness.Client, w.Config.Pool, deadline, change.Precondition{})
		return err
	})
	w.drains.drainedAt = w.Time.Now
}

// undrain resumes the pool.
func (w *world) undrain() {
	w.drains.resumedAt = w.Time.Now
	w.jobCall("resume of the pool", func(ctx context.Context) error {
		_, err := w.System.Pools.Resume(ctx, harness.Client, w.Config.Pool, change.Precondition{})
		return err
	})
	w.drains.doneAt = w.Time.Now
}

// draining reports whether the pool may be draining now.
func (w *world) draining() bool {
	return !w.drains.beganAt.IsZero() && w.drains.doneAt.IsZero()
}

// checkDrained checks that a draining pool grants no slot. A grant may have used an older
// record of the pool.
func (w *world) checkDrained(r *run.Run) {
	if at := w.drains.drainedAt; r.Slot.Pool == w.Config.Pool && !at.IsZero() && w.drains.resumedAt.IsZero() && at.Add(w.lookupSlack()).Before(w.Time.Now) {
		w.Fail("%s got a slot of the pool, which drains since %s", r.ID, at.Sub(harness.Start))
	}
}

// checkEviction checks that an attempt is evicted only after the deadline of a drain, and that
// its end does not fail the run.
func (w *world) checkEviction(before, r *run.Run) {
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
