package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/explain"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

const (
	// measuredRuns is how many ended runs describe a pool. measuredFailures is how many
	// of them may have failed.
	measuredRuns, measuredFailures = 256, 64
	// startedRuns is how many runs describe the starts of a pool that has no queue.
	startedRuns = 16
	// readHolders is how many holders of slots are read, so that their age is known.
	readHolders = 32
	// measureAge is how long the measured runs of a pool are used. While they are few, it is a
	// second for each, but at least measureFew, and measureNone while no run has ended: the
	// first ends of a burst change its predictions.
	measureAge, measureFew, measureNone = 10 * time.Minute, 10 * time.Second, 2 * time.Second
)

// estimates says when runs of a pool start. What it says is made of the records of runs:
// they have what was measured, so nothing is written for it and nothing of it is lost
// with a process. It reads the queue of a pool again after headAge, less often if that is
// long, and the measured runs after measureAge. No call waits for that of another one.
type estimates struct {
	store port.Store
	clock clock.Clock
	pools sync.Map // poolID -> *estimate
}

// estimate is what is known of a pool.
type estimate struct {
	started kept[explain.Measures] // of a few runs, of any state
	ended   kept[explain.Measures]
	queue   kept[*forecast]
}

// kept is a value that is read from the store, and again when it is too old. Its zero value
// was never read.
type kept[T any] struct {
	mu      sync.Mutex
	value   T
	at      time.Time // zero before the first read
	reading bool
}

// get returns the value, which it reads if that is not fresh after its age. While another
// call reads it, the value is used twice as long.
func (k *kept[T]) get(now time.Time, fresh func(T, time.Duration) bool, read func() (T, error)) (value T, err error) {
	k.mu.Lock()
	old, usable := k.at, k.fresh(now, fresh, k.reading)
	value, k.reading = k.value, k.reading || !usable
	k.mu.Unlock()
	if usable {
		return value, nil
	}
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.reading = false
		if err == nil && k.at.Equal(old) { // else another call has read it since
			k.value, k.at = value, now
		}
	}()
	return read()
}

// peek returns the value, and whether it is fresh.
func (k *kept[T]) peek(now time.Time, fresh func(T, time.Duration) bool) (T, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.value, k.fresh(now, fresh, false)
}

func (k *kept[T]) fresh(now time.Time, fresh func(T, time.Duration) bool, reading bool) bool {
	age := now.Sub(k.at)
	if k.at.IsZero() || age < 0 {
		return false
	}
	return fresh(k.value, age) || reading && fresh(k.value, age/2)
}

// forecast is what was known of the queue of a pool at a time.
type forecast struct {
	explain.Forecast
	held int
	mu   sync.Mutex
	// ahead has the position of the next run of a priority and a key.
	ahead map[string]aheadCount
}

// aheadCount is the position of the next run that joins a queue: as it was counted at a time, and
// the runs that this process has added since.
type aheadCount struct {
	next int
	at   time.Time
}

// fresh reports whether the count is used. A long queue is counted less often.
func (c aheadCount) fresh(now time.Time) bool {
	age := now.Sub(c.at)
	return !c.at.IsZero() && age >= 0 && age < recheckAge+10*time.Duration(c.next)*time.Second/countRate
}

// join returns the position of a slot that joins the queue. Those with a lower priority are
// behind it.
func (f *forecast) join(slot run.Slot, now time.Time, count func() (int, error)) (int, error) {
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
		known = latest // others have joined meanwhile, whom the count does not have
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

func (e *estimates) of(id poolID) *estimate {
	found, _ := e.pools.LoadOrStore(id, &estimate{})
	return found.(*estimate) //nolint:forcetypeassert // the map has no other values
}

// admitted predicts the start of a run that gets a slot of the pool now.
func (e *estimates) admitted(ctx context.Context, r run.Run, pool run.Pool) (*run.Prediction, error) {
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

// joining is a queue with the place that a run gets in it.
type joining struct {
	pool run.Pool
	slot run.Slot
}

// joins predicts the start of a run that joins one queue after the other from now on; nil
// if that depends on a person, who resumes the pool.
func (e *estimates) joins(ctx context.Context, r run.Run, queues ...joining) (*run.Prediction, error) {
	return e.joinsAfter(ctx, r, 0, queues...)
}

// joinsAfter does so for a run that has got a slot of the first queue after a delay at the
// earliest.
func (e *estimates) joinsAfter(ctx context.Context, r run.Run, delay time.Duration, queues ...joining) (*run.Prediction, error) {
	var expected explain.Range
	ahead := 0
	for i, to := range queues {
		if to.pool.Draining {
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
func (e *estimates) wait(ctx context.Context, r run.Run, to joining) (wait explain.Range, position int, err error) {
	f, err := e.forecast(ctx, r.Tenant, to.pool)
	if err != nil {
		return wait, 0, err
	}
	position, err = f.join(to.slot, e.clock.Now(), func() (int, error) {
		return e.store.QueueAhead(ctx, r.Tenant, to.slot, limit.QueuePositions)
	})
	if err != nil {
		return wait, 0, fmt.Errorf("cannot count the queue of pool %s: %w", to.pool.ID, err)
	}
	return f.QueuedAs(position, explain.ClassOf(r), explain.SizeOf(r)), position, nil
}

// forecast returns what is known of the queue of a pool.
func (e *estimates) forecast(ctx context.Context, tenant string, pool run.Pool) (*forecast, error) {
	measures, err := e.measured(ctx, tenant, pool.ID)
	if err != nil {
		return nil, err
	}
	now := e.clock.Now()
	fresh := func(f *forecast, age time.Duration) bool {
		return age < headAge+10*time.Duration(f.held)*time.Second/countRate
	}
	queue := &e.of(poolID{tenant, pool.ID}).queue
	read, err := queue.get(now, fresh, func() (*forecast, error) {
		q, err := e.read(ctx, tenant, pool)
		if err != nil {
			return nil, err
		}
		gate, err := e.store.StartGate(ctx, pool.ID)
		if err != nil {
			return nil, err
		}
		q.Measures = measures
		kind := explain.LimitPool
		if strings.Contains(pool.ID, "/") { // of a key
			kind = explain.LimitKey
		}
		return &forecast{Forecast: explain.NewForecast(q.Load(kind, gate, now), measures), held: q.Held, ahead: map[string]aheadCount{}}, nil
	})
	if err != nil {
		return nil, err
	}
	if kept, ok := queue.peek(e.clock.Now(), fresh); ok {
		return kept, nil // calls at the same time count the runs that join in the same one
	}
	return read, nil
}

func predictionOf(r explain.Range) *run.Prediction {
	return &run.Prediction{P50: r.P50.Milliseconds(), P90: r.P90.Milliseconds(), Base: r.Base.Milliseconds(), Measured: r.Measured}
}

// measured returns the measured runs of a pool.
func (e *estimates) measured(ctx context.Context, tenant, pool string) (explain.Measures, error) {
	return e.of(poolID{tenant, pool}).ended.get(e.clock.Now(), isMeasured, func() (explain.Measures, error) {
		return e.measure(ctx, tenant, pool, true)
	})
}

// isMeasured reports whether measures of an age are used.
func isMeasured(m explain.Measures, age time.Duration) bool {
	switch {
	case m.Count == 0:
		return age < measureNone
	case m.Count < measuredRuns/4:
		return age < max(measureFew, time.Duration(m.Count)*time.Second)
	}
	return age < measureAge
}

// measure reads the measured runs of a pool, or of a job if it is the pool of one. Those of
// a pool are a few runs of any state, or the ended ones if thorough.
func (e *estimates) measure(ctx context.Context, tenant, pool string, thorough bool) (explain.Measures, error) {
	pages := []port.Page{{Limit: startedRuns}}
	if jobID, of := run.PoolJob(pool); of {
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

// holders reads some of the runs that hold slots of a pool.
func (e *estimates) holders(ctx context.Context, tenant, pool string, add func(run.Run)) error {
	refs, err := e.store.Holders(ctx, tenant, pool, readHolders)
	if err != nil {
		return fmt.Errorf("cannot read the slots of pool %s: %w", pool, err)
	}
	return e.load(ctx, refs, add)
}

func (e *estimates) load(ctx context.Context, refs []run.Ref, add func(run.Run)) error {
	for _, ref := range refs {
		r, err := e.store.Load(ctx, ref)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read a run that holds a slot: %w", err)
		}
		add(r)
	}
	return nil
}

// read reads the slots of a pool with their holders.
func (e *estimates) read(ctx context.Context, tenant string, pool run.Pool) (explain.Queue, error) {
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

// joinsKey predicts the start of a run that joins the queue of its key.
func (s *Lifecycle) joinsKey(ctx context.Context, r run.Run, since time.Time) *run.Prediction {
	key := run.Pool{Tenant: r.Tenant, ID: run.KeyPool(r.Concurrency.Key), Limit: r.Concurrency.Limit}
	return s.joinsBefore(ctx, r, 0, joining{key, r.Joined(run.AdmitKeyQueue, since).KeySlot})
}

// waitsBy predicts the start of a run that waits by an action; nil for kill_old, which
// ends the holders of the slots.
func (s *Lifecycle) waitsBy(ctx context.Context, r run.Run, action run.Action) *run.Prediction {
	var delay time.Duration
	switch action.Type {
	case run.ActionSkip, run.ActionKillOld:
		return nil
	case run.ActionRetryLater:
		delay = action.RetryDelay()
	}
	slots := r.JobLimit(r.Constraints.MaxConcurrentRuns)
	if slots == 0 {
		return s.joinsBefore(ctx, r, delay)
	}
	job := run.Pool{Tenant: r.Tenant, ID: run.JobPool(r.JobID), Limit: slots}
	return s.joinsBefore(ctx, r, delay, joining{job, r.QueuedJobSlot()})
}

// joinsBefore predicts the start of a run that joins other queues before that of its pool.
func (s *Lifecycle) joinsBefore(ctx context.Context, r run.Run, delay time.Duration, before ...joining) *run.Prediction {
	pool, err := s.poolOf(ctx, r)
	var slot run.Slot
	if err == nil {
		slot, err = s.joined(ctx, r, pool)
	}
	var p *run.Prediction
	if err == nil {
		p, err = s.estimates.joinsAfter(ctx, r, delay, append(before, joining{pool, slot})...)
	}
	return s.predicted(ctx, r, p, err)
}

// joined returns the place that the run would get in the queue of a pool, of its job or
// of its key.
func (s *Lifecycle) joined(ctx context.Context, r run.Run, pool run.Pool) (run.Slot, error) {
	now := s.now()
	switch {
	case r.JobID != "" && pool.ID == run.JobPool(r.JobID):
		return r.QueuedJobSlot(), nil
	case r.Concurrency != nil && pool.ID == run.KeyPool(r.Concurrency.Key):
		return r.Joined(run.AdmitKeyQueue, now).KeySlot, nil
	}
	line, err := s.store.Line(ctx, r.Tenant, r.SlotOf(pool.ID, pool.Limit))
	return r.SlotOf(pool.ID, pool.Limit).Joining(line, now), err
}
