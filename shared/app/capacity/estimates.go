package capacity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/forecast"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	// measuredRuns is the number of completed runs that are measured for a pool, and
	// measuredFailures the number of failed ones.
	measuredRuns, measuredFailures = 256, 64
	// startedRuns is the number of runs, of any state, that are measured for a start without a
	// queue.
	startedRuns = 16
	// readHolders is the number of slot holders whose records are read for their age.
	readHolders = 32
	// measureAge is the time for which the measured runs of a pool are cached. If they are few,
	// it is a second for each, but at least measureFew. If no run has ended, it is measureNone.
	// So the first ends of a burst change its predictions.
	measureAge, measureFew, measureNone = 10 * time.Minute, 10 * time.Second, 2 * time.Second
)

// Estimates predicts when runs of a pool start. It computes predictions from the records of
// runs, so it writes nothing, and a restart loses nothing. It reads the queue of a pool again
// after headAge, later for a long queue, and the measured runs after measureAge. No call waits
// for the reads of another call.
type Estimates struct {
	store queuedRuns
	clock clock.Clock
	pools sync.Map // poolID -> *estimate
}

// queuedRuns has runs and their queues.
type queuedRuns interface {
	port.RunStore
	port.LeaseStore
}

// NewEstimates returns the estimates from the runs in a store.
func NewEstimates(store queuedRuns, c clock.Clock) *Estimates {
	return &Estimates{store: store, clock: c}
}

// estimate has the cached measures and the cached queue of a pool.
type estimate struct {
	started cached[explain.Measures] // measures of startedRuns runs of any state
	ended   cached[explain.Measures]
	queue   cached[*queueForecast]
}

// queueForecast is the forecast for the queue of a pool as read at a time.
type queueForecast struct {
	explain.Forecast
	held int
	mu   sync.Mutex
	// ahead has the position of the next run by the priority and turn of its slot.
	ahead map[string]aheadCount
}

// aheadCount is the position of the next run that joins a queue: the count at a time, plus the
// runs that this process has added since.
type aheadCount struct {
	next int
	at   time.Time
}

// fresh reports whether the count is recent enough. A long queue is counted less often.
func (c aheadCount) fresh(now time.Time) bool {
	age := now.Sub(c.at)
	return !c.at.IsZero() && age >= 0 && age < recheckAge+10*time.Duration(c.next)*time.Second/countRate
}

// join returns the position of a slot that joins the queue, and counts the slot. The next
// positions of lower priorities move back by one. count reads the position from the store.
func (f *queueForecast) join(slot platform.Slot, now time.Time, count func() (int, error)) (int, error) {
	rank := slot.Rank()
	turn := rank + slot.Turn()
	f.mu.Lock()
	known := f.ahead[turn]
	f.mu.Unlock()
	if !known.fresh(now) {
		counted, err := count()
		if err != nil {
			return 0, err
		}
		known = aheadCount{counted, now}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if latest := f.ahead[turn]; latest.next > known.next && (latest.at.After(now) || latest.fresh(now)) {
		known = latest // the count lacks runs that have joined meanwhile
	}
	position := known.next
	known.next++
	f.ahead[turn] = known
	for other, behind := range f.ahead {
		if other[:len(rank)] > rank {
			behind.next++
			f.ahead[other] = behind
		}
	}
	return position, nil
}

func (e *Estimates) of(id poolID) *estimate {
	found, _ := e.pools.LoadOrStore(id, &estimate{})
	return found.(*estimate) //nolint:forcetypeassert // the map has no other values
}

// Admitted predicts the start of a run that acquires a slot of the pool now.
func (e *Estimates) Admitted(ctx context.Context, r run.Run, pool platform.Pool) (*forecast.Prediction, error) {
	known, now := e.of(poolID{r.Tenant, pool.ID}), e.clock.Now()
	measures, is := known.ended.peek(now, isMeasured)
	if !is {
		var err error
		measures, err = known.started.get(now, isMeasured, func() (explain.Measures, error) {
			return e.measure(ctx, r.Tenant, pool.ID, false)
		})
		if err != nil {
			return nil, err
		}
	}
	return predictionOf(measures.Started(explain.ClassOf(r))), nil
}

// Entry is a queue and the slot with which a run joins it.
type Entry struct {
	Pool platform.Pool
	Slot platform.Slot
}

// Joins predicts the start of a run that waits in the queues one after the other, beginning now. It
// returns nil if a pool is draining, because its resumption cannot be predicted.
func (e *Estimates) Joins(ctx context.Context, r run.Run, queues ...Entry) (*forecast.Prediction, error) {
	return e.JoinsAfter(ctx, r, 0, queues...)
}

// JoinsAfter predicts the same for a run that gets a slot of the first queue not before a
// delay.
func (e *Estimates) JoinsAfter(ctx context.Context, r run.Run, delay time.Duration, queues ...Entry) (*forecast.Prediction, error) {
	var expected explain.Range
	ahead := 0
	for i, to := range queues {
		if to.Pool.Draining {
			return nil, nil
		}
		wait, position, err := e.wait(ctx, r, to)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			wait = wait.NotBefore(delay)
		}
		expected, ahead = expected.Then(wait), position
	}
	p := predictionOf(expected)
	p.Ahead = ahead
	return p, nil
}

// wait forecasts the wait of a run that joins a queue now, and returns its position there.
func (e *Estimates) wait(ctx context.Context, r run.Run, to Entry) (wait explain.Range, position int, err error) {
	f, err := e.queueForecast(ctx, r.Tenant, to.Pool)
	if err != nil {
		return wait, 0, err
	}
	position, err = f.join(to.Slot, e.clock.Now(), func() (int, error) {
		return e.store.QueueAhead(ctx, r.Tenant, to.Slot, limit.QueuePositions)
	})
	if err != nil {
		return wait, 0, fmt.Errorf("cannot count the queue of pool %s: %w", to.Pool.ID, err)
	}
	return f.QueuedAs(position, explain.ClassOf(r), explain.SizeOf(r)), position, nil
}

// queueForecast returns the forecast for the queue of a pool, cached for at least headAge.
func (e *Estimates) queueForecast(ctx context.Context, tenant string, pool platform.Pool) (*queueForecast, error) {
	measures, err := e.Measured(ctx, tenant, pool.ID)
	if err != nil {
		return nil, err
	}
	now := e.clock.Now()
	fresh := func(f *queueForecast, age time.Duration) bool {
		return age < headAge+10*time.Duration(f.held)*time.Second/countRate
	}
	queue := &e.of(poolID{tenant, pool.ID}).queue
	read, err := queue.get(now, fresh, func() (*queueForecast, error) {
		q, err := e.Read(ctx, tenant, pool)
		if err != nil {
			return nil, err
		}
		limiter, err := e.store.StartLimiter(ctx, pool.ID)
		if err != nil {
			return nil, err
		}
		q.Measures = measures
		kind := explain.LimitPool
		if strings.Contains(pool.ID, "/") { // of a key
			kind = explain.LimitKey
		}
		return &queueForecast{Forecast: explain.NewForecast(q.Load(kind, limiter, now), measures), held: q.Held, ahead: map[string]aheadCount{}}, nil
	})
	if err != nil {
		return nil, err
	}
	if cached, ok := queue.peek(e.clock.Now(), fresh); ok {
		return cached, nil // concurrent calls must count their runs in the same forecast
	}
	return read, nil
}

func predictionOf(r explain.Range) *forecast.Prediction {
	return &forecast.Prediction{P50: r.P50.Milliseconds(), P90: r.P90.Milliseconds(), Base: r.Base.Milliseconds(), Measured: r.Measured}
}

// Measured returns the measures of the ended runs of a pool, cached as isMeasured permits.
func (e *Estimates) Measured(ctx context.Context, tenant, pool string) (explain.Measures, error) {
	return e.of(poolID{tenant, pool}).ended.get(e.clock.Now(), isMeasured, func() (explain.Measures, error) {
		return e.measure(ctx, tenant, pool, true)
	})
}

// isMeasured reports whether cached measures of an age are fresh.
func isMeasured(m explain.Measures, age time.Duration) bool {
	switch {
	case m.Count == 0:
		return age < measureNone
	case m.Count < measuredRuns/4:
		return age < max(measureFew, time.Duration(m.Count)*time.Second)
	}
	return age < measureAge
}

// measure reads runs of a pool and returns their measures. For a job's pool it reads runs of
// the job. For another pool it reads startedRuns runs of any state, or, if thorough, ended runs
// and holders of slots.
func (e *Estimates) measure(ctx context.Context, tenant, pool string, thorough bool) (explain.Measures, error) {
	pages := []port.Page{{Limit: startedRuns}}
	if jobID, of := platform.PoolJob(pool); of {
		pages = []port.Page{{JobID: jobID, Limit: measuredFailures}}
	} else if thorough {
		pages = []port.Page{{State: run.Completed, Limit: measuredRuns}, {State: run.Failed, Limit: measuredFailures}}
	}
	var found []explain.Measure
	now := e.clock.Now()
	add := func(r run.Run) {
		if pool != r.Slot.Pool && pool != r.JobSlot.Pool && pool != r.KeySlot.Pool {
			return
		}
		if m, ok := explain.MeasureOf(r, now); ok {
			found = append(found, m)
		}
	}
	for _, page := range pages {
		runs, _, err := e.store.List(ctx, tenant, page)
		if err != nil {
			return explain.Measures{}, fmt.Errorf("cannot read the measured runs of pool %s: %w", pool, err)
		}
		for _, r := range runs {
			add(r)
		}
	}
	if thorough && len(pages) > 1 {
		if err := e.holders(ctx, tenant, pool, add); err != nil {
			return explain.Measures{}, err
		}
	}
	return explain.NewMeasures(found), nil
}

// holders calls add for at most readHolders runs that hold slots of a pool.
func (e *Estimates) holders(ctx context.Context, tenant, pool string, add func(run.Run)) error {
	refs, err := e.store.Holders(ctx, tenant, pool, readHolders)
	if err != nil {
		return fmt.Errorf("cannot read the slots of pool %s: %w", pool, err)
	}
	return e.load(ctx, refs, add)
}

func (e *Estimates) load(ctx context.Context, refs []run.Ref, add func(run.Run)) error {
	for _, ref := range refs {
		r, err := e.store.Load(ctx, ref)
		if errors.Is(err, port.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read a run that holds a slot: %w", err)
		}
		add(r)
	}
	return nil
}

// Read reads the slots of a pool, and the records of at most readHolders holders.
func (e *Estimates) Read(ctx context.Context, tenant string, pool platform.Pool) (explain.Queue, error) {
	q := explain.Queue{Name: pool.ID, Limit: pool.Limit, QueueLimit: pool.QueueLimit, Draining: pool.Draining, Position: -1}
	refs, err := e.store.Holders(ctx, tenant, pool.ID, limit.ConcurrentRuns)
	if err != nil {
		return q, fmt.Errorf("cannot read the slots of pool %s: %w", pool.ID, err)
	}
	q.Held = len(refs)
	err = e.load(ctx, refs[:min(len(refs), readHolders)], func(r run.Run) {
		if s, holds := r.Holds(pool.ID); holds {
			q.Holders = append(q.Holders, explain.HolderOf(r, s))
		}
	})
	return q, err
}
