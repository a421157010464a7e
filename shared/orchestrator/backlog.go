package orchestrator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

const (
	// headAge is how long the head of a queue is used after it was read.
	headAge = time.Second
	// recheckAge is the shortest time between two reads of a queue: for a run that
	// joined it after the last one, or while it is full.
	recheckAge = 100 * time.Millisecond
	// countRate is how many queued runs are counted per second at most, so that
	// the cost of the limit does not grow with the queue.
	countRate = 20_000
)

// poolID identifies a pool.
type poolID struct{ tenant, pool string }

// queueHeads answers positions from the head of each queue, which it reads at most
// once in headAge. The cost of a position does not depend on the length of the
// queue or on the number of readers.
type queueHeads struct {
	store port.Store
	clock clock.Clock
	pools sync.Map // poolID -> *queueHead
}

type queueHead struct {
	mu        sync.Mutex
	readAt    time.Time
	positions map[string]int
}

// position returns the number of runs before the run in its queue, and
// limit.QueuePositions for it or any higher number. It is up to a second old. It is
// -1 if the run has left the queue.
func (q *queueHeads) position(ctx context.Context, r run.Run) (int, error) {
	found, _ := q.pools.LoadOrStore(poolID{r.Tenant, r.Slot.Pool}, &queueHead{})
	head := found.(*queueHead) //nolint:forcetypeassert // the map has no other values
	head.mu.Lock()
	defer head.mu.Unlock()
	age := q.clock.Now().Sub(head.readAt)
	at, known := head.positions[r.ID]
	joined := !known && len(head.positions) < limit.QueuePositions
	if age >= headAge || age < 0 || joined && age >= recheckAge {
		refs, err := q.store.Queue(ctx, r.Tenant, r.Slot.Pool, limit.QueuePositions)
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

// queueLimit refuses new runs of a pool with a full queue. It counts a queue now
// and then and adds what this process accepted since; another process can accept
// runs beyond the limit until this one counts again.
type queueLimit struct {
	store port.Store
	clock clock.Clock
	most  int
	pools sync.Map // poolID -> *queueCount
}

type queueCount struct {
	mu        sync.Mutex
	countedAt time.Time
	counted   int
	accepted  int
}

// admit accounts for a new run of the pool. It returns AdmissionReject if the
// queue is full. A limit of 0 admits every run.
func (q *queueLimit) admit(ctx context.Context, tenant, pool string) error {
	if q.most == 0 {
		return nil
	}
	found, _ := q.pools.LoadOrStore(poolID{tenant, pool}, &queueCount{})
	count := found.(*queueCount) //nolint:forcetypeassert // the map has no other values
	count.mu.Lock()
	defer count.mu.Unlock()
	age := q.clock.Now().Sub(count.countedAt)
	cost := time.Duration(count.counted) * time.Second / countRate
	full := count.counted+count.accepted >= q.most
	if age >= time.Second+10*cost || age < 0 || full && age >= recheckAge+cost {
		counted, err := q.store.QueueLength(ctx, tenant, pool, q.most)
		if err != nil {
			return fmt.Errorf("cannot count the queue of pool %s: %w", pool, err)
		}
		count.countedAt, count.counted, count.accepted = q.clock.Now(), counted, 0
		full = counted >= q.most
	}
	if full {
		return fault.New(fault.AdmissionReject, "the queue of pool %s is full: %d tasks are waiting; retry later", pool, q.most)
	}
	count.accepted++
	return nil
}
