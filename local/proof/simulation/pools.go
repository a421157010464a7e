package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

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
	w.resizes = []resize{{limit: w.config.MaxMachines, doneAt: start}}
	if w.mixed() {
		w.time.after(0, w.operateMixed)
		return
	}
	if w.warmed() {
		w.time.after(0, w.operateWarm)
		return
	}
	if w.contended() {
		w.time.after(0, w.operateContended)
		return
	}
	if !w.chance(0.4) {
		return
	}
	resizes := w.config.MaxMachines > 0 && w.chance(0.6)
	w.time.after(w.upTo(w.longest/2), func() {
		for range 1 + w.random.IntN(4) {
			if resizes && w.chance(0.7) {
				w.resize()
			} else {
				w.drain()
				w.time.sleep(w.upTo(w.longest / 2))
				w.undrain()
			}
			w.time.sleep(w.upTo(w.longest / 2))
		}
	})
}

// resize changes the limit of the pool, and sometimes that of its queue.
func (w *world) resize() {
	r := resize{limit: 1 + w.random.IntN(2*w.config.MaxMachines)}
	if w.chance(0.3) || w.contended() && w.chance(0.5) {
		r.queueLimit = 1 + w.random.IntN(3)
	}
	w.resizes = append(w.resizes, r)
	w.jobCall(fmt.Sprintf("limits of the pool: %+v", r), func(ctx context.Context) error {
		_, _, err := w.system.Pools.Put(ctx, client, w.config.Pool, pools.Definition{Limit: r.limit, QueueLimit: &r.queueLimit}, change.Precondition{})
		return err
	})
	w.resizes[len(w.resizes)-1].doneAt = w.time.now
}

// inForce returns the limits of the pool that a call may use now: the last acknowledged limits,
// the limits of a pending change, and earlier limits while processes may still use them.
func (w *world) inForce() []resize {
	first := 0
	for i, r := range w.resizes {
		if !r.doneAt.IsZero() && r.doneAt.Add(w.lookupSlack()).Before(w.time.now) {
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
			w.fail("%s got one of %d held slots of %s, want at most %d", r.ID, held, p.id, p.definition.Limit)
		}
		return
	}
	if _, most := w.limits(); most > 0 {
		if held := w.poolUse()[w.config.Pool].held; held > most {
			w.fail("%s got one of %d held slots, want at most %d", r.ID, held, most)
		}
	}
}

// checkRoom checks that the pool accepts no new run after its queue has been full long enough
// for every process to know.
func (w *world) checkRoom(r *run.Run) {
	if r.Slot.Pool != w.config.Pool {
		return // the run of a replica
	}
	most := 0
	for _, one := range w.inForce() {
		if one.queueLimit == 0 {
			return
		}
		most = max(most, one.queueLimit)
	}
	queued, since := 0, w.time.now.Add(-w.lookupSlack()-countAge-w.lag)
	for _, other := range w.records.ordered {
		if other.ID != r.ID && other.Slot.Pool == w.config.Pool && w.waitsLong(other, since) {
			queued++
		}
	}
	if r.Missed == nil && r.Slot.State == "" && queued >= most {
		w.fail("%s was accepted with %d runs in the queue of its pool, want at most %d", r.ID, queued, most)
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
	slack := lookupAge + 2*w.plan.skew
	if w.plan.slowCommits+w.plan.serviceFaults > 0 {
		slack += 2 * slowest
	}
	return slack
}

// drain drains the pool, sometimes with a deadline.
func (w *world) drain() {
	var deadline *int
	if w.chance(0.4) {
		deadline = new(w.random.IntN(600))
	}
	w.drains = drains{beganAt: w.time.now}
	w.jobCall("drain of the pool", func(ctx context.Context) error {
		_, err := w.system.Pools.Drain(ctx, client, w.config.Pool, deadline, change.Precondition{})
		return err
	})
	w.drains.drainedAt = w.time.now
}

// undrain resumes the pool.
func (w *world) undrain() {
	w.drains.resumedAt = w.time.now
	w.jobCall("resume of the pool", func(ctx context.Context) error {
		_, err := w.system.Pools.Resume(ctx, client, w.config.Pool, change.Precondition{})
		return err
	})
	w.drains.doneAt = w.time.now
}

// draining reports whether the pool may be draining now.
func (w *world) draining() bool {
	return !w.drains.beganAt.IsZero() && w.drains.doneAt.IsZero()
}

// checkDrained checks that a draining pool grants no slot. A grant may have used an older
// record of the pool.
func (w *world) checkDrained(r *run.Run) {
	if at := w.drains.drainedAt; r.Slot.Pool == w.config.Pool && !at.IsZero() && w.drains.resumedAt.IsZero() && at.Add(w.lookupSlack()).Before(w.time.now) {
		w.fail("%s got a slot of the pool, which drains since %s", r.ID, at.Sub(start))
	}
}

// checkEviction checks that an attempt is evicted only after the deadline of a drain, and that
// its end does not fail the run.
func (w *world) checkEviction(before, r *run.Run) {
	if was := before.Attempt.Eviction; was == nil {
		w.attempt(r.TaskID, r.Attempt.Number).evicted = true
		if w.drains.beganAt.IsZero() {
			w.fail("attempt %d of %s is asked to end, and its pool does not drain", r.Attempt.Number, r.ID)
		}
	} else if *was != *r.Attempt.Eviction {
		w.fail("the request that attempt %d of %s ends changed", r.Attempt.Number, r.ID)
	}
	if r.State == run.Failed && r.Fault != nil && r.Fault.Code == fault.PoolDrained {
		w.fail("%s failed, because its pool drains", r.ID)
	}
}
