package capacity

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	// headAge is the time for which the head of a queue is cached.
	headAge = time.Second
	// recheckAge is the shortest time between two reads of a queue: for a run that
	// joined it after the last one, or while it is full.
	recheckAge = 100 * time.Millisecond
	// countRate is the maximum number of queued runs that are counted per second. With it, the
	// cost of the limit does not grow with the queue.
	countRate = 20_000
)

// poolID identifies a pool.
type poolID struct{ tenant, pool string }

// Positions returns positions of runs in their queues. It caches the head of each queue for
// headAge. The cost of a position does not depend on the length of the queue or on the number
// of readers.
type Positions struct {
	store port.LeaseStore
	clock clock.Clock
	pools sync.Map // poolID -> *queueHead
}

// NewPositions returns the positions in the queues of a store.
func NewPositions(store port.LeaseStore, c clock.Clock) *Positions {
	return &Positions{store: store, clock: c}
}

type queueHead struct {
	mu        sync.Mutex
	readAt    time.Time
	positions map[string]int
}

// Of returns the number of runs before the run in the queue of its key, its job or its pool,
// at most limit.QueuePositions. It is up to a second old. It is -1 if the run has left the
// queue.
func (q *Positions) Of(ctx context.Context, r run.Run) (int, error) {
	pool := r.Slot.Pool
	switch {
	case r.AwaitsKey():
		pool = r.KeySlot.Pool
	case r.AwaitsJobSlot():
		pool = r.JobSlot.Pool
	}
	found, _ := q.pools.LoadOrStore(poolID{r.Tenant, pool}, &queueHead{})
	head := found.(*queueHead) //nolint:forcetypeassert // the map has no other values
	head.mu.Lock()
	defer head.mu.Unlock()
	age := q.clock.Now().Sub(head.readAt)
	at, known := head.positions[r.ID]
	joined := !known && len(head.positions) < limit.QueuePositions
	if age >= headAge || age < 0 || joined && age >= recheckAge {
		refs, err := q.store.Queue(ctx, r.Tenant, pool, limit.QueuePositions)
		if err != nil {
			return -1, err
		}
		head.readAt, head.positions = q.clock.Now(), make(map[string]int, len(refs))
		for i, ref := range refs {
			head.positions[ref.ID] = i
		}
		at, known = head.positions[r.ID]
	}
	switch {
	case known:
		return at, nil
	case len(head.positions) == limit.QueuePositions:
		return limit.QueuePositions, nil
	}
	return -1, nil
}

// QueueLimit refuses new runs of a pool with a full queue. It counts a queue periodically,
// and in between applies the changes by this process: the runs that it accepts, admits,
// enqueues and grants. It does not see runs that another process accepts until it counts
// again, so the limit can be exceeded.
type QueueLimit struct {
	store port.LeaseStore
	clock clock.Clock
	pools sync.Map // poolID -> *queueCount
}

// NewQueueLimit returns the limits of the queues in a store.
func NewQueueLimit(store port.LeaseStore, c clock.Clock) *QueueLimit {
	return &QueueLimit{store: store, clock: c}
}

type queueCount struct {
	mu        sync.Mutex
	countedAt time.Time
	counted   int
	// truncated: the queue was longer than its limit, so its end was not counted.
	truncated bool
	// accepted has the ids of the runs that this process accepted and has neither admitted nor
	// enqueued, with the times.
	accepted map[string]time.Time
	// free is the number of free slots as of freeAt.
	freeAt time.Time
	free   int
}

// Admit counts a new run of the pool, or returns AdmissionReject if the queue is full. It
// is idempotent.
func (q *QueueLimit) Admit(ctx context.Context, pool platform.Pool, runID string) error {
	if pool.QueueLimit == 0 {
		return nil
	}
	found, _ := q.pools.LoadOrStore(poolID{pool.Tenant, pool.ID}, &queueCount{accepted: map[string]time.Time{}})
	count := found.(*queueCount) //nolint:forcetypeassert // the map has no other values
	count.mu.Lock()
	defer count.mu.Unlock()
	if _, again := count.accepted[runID]; again {
		return nil
	}
	full, err := q.full(ctx, pool, count)
	age := q.clock.Now().Sub(count.countedAt)
	cost := time.Duration(count.counted) * time.Second / countRate
	unknown := count.truncated && !full // after grants, or with a larger limit
	if err == nil && (age >= time.Second+10*cost || age < 0 || unknown || full && age >= recheckAge+cost) {
		if err = q.count(ctx, pool, count); err == nil {
			full, err = q.full(ctx, pool, count)
		}
	}
	if err != nil {
		return err
	}
	if full {
		return fault.New(fault.AdmissionReject, "the queue of pool %s is full: %d runs are waiting; retry later", pool.ID, pool.QueueLimit)
	}
	count.accepted[runID] = q.clock.Now()
	return nil
}

// count reads the length of the queue. It removes the accepted runs that are older than
// recheckAge: they are in the queue, or have a slot.
func (q *QueueLimit) count(ctx context.Context, pool platform.Pool, count *queueCount) error {
	counted, err := q.store.QueueLength(ctx, pool.Tenant, pool.ID, pool.QueueLimit+1)
	if err != nil {
		return fmt.Errorf("cannot count the queue of pool %s: %w", pool.ID, err)
	}
	count.countedAt, count.counted, count.truncated = q.clock.Now(), counted, counted > pool.QueueLimit
	maps.DeleteFunc(count.accepted, func(_ string, at time.Time) bool { return count.countedAt.Sub(at) >= recheckAge })
	return nil
}

// full reports whether one more run would exceed the limit. It counts the queued runs, and
// the accepted runs for which no slot is free.
func (q *QueueLimit) full(ctx context.Context, pool platform.Pool, count *queueCount) (bool, error) {
	room := pool.QueueLimit - count.counted
	switch {
	case room <= 0 || len(count.accepted) < room:
		return room <= 0, nil
	case pool.Draining:
		return true, nil
	case pool.Limit == 0:
		return false, nil
	}
	if age := q.clock.Now().Sub(count.freeAt); age >= recheckAge || age < 0 {
		held, err := q.store.Holders(ctx, pool.Tenant, pool.ID, pool.Limit)
		if err != nil {
			return false, fmt.Errorf("cannot count the slots of pool %s: %w", pool.ID, err)
		}
		count.freeAt, count.free = q.clock.Now(), pool.Limit-len(held)
	}
	return len(count.accepted)-max(count.free, 0) >= room, nil
}

// Forget removes an accepted run that was not created, or that joins no queue yet.
func (q *QueueLimit) Forget(r run.Run) {
	q.change(&r, func(count *queueCount) { delete(count.accepted, r.ID) })
}

// Committed applies the commit of a decision to the counts.
func (q *QueueLimit) Committed(d *run.Decision) {
	if d.Lease == "" && d.Run.Slot.State == "" {
		return
	}
	q.change(&d.Run, func(count *queueCount) {
		delete(count.accepted, d.Run.ID)
		switch d.Lease {
		case run.LeaseEnqueue, run.LeaseRequeue:
			count.counted++
		case run.LeaseGrant, run.LeaseDequeue:
			count.counted--
		}
		switch d.Lease {
		case run.LeaseTake, run.LeaseGrant:
			count.free--
		case run.LeaseRelease, run.LeaseRequeue:
			count.free++
		}
	})
}

func (q *QueueLimit) change(r *run.Run, do func(*queueCount)) {
	found, ok := q.pools.Load(poolID{r.Tenant, r.Slot.Pool})
	if !ok {
		return
	}
	count := found.(*queueCount) //nolint:forcetypeassert // the map has no other values
	count.mu.Lock()
	defer count.mu.Unlock()
	do(count)
}
