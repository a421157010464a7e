package inferences

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// ShiftConfig configures the shift of a dispatcher.
type ShiftConfig struct {
	// Seats has a room for each pool, with a seat for each dispatcher that serves its tasks.
	Seats port.Seats
	// Tasks is the number of tasks that one dispatcher serves at a time. A pool has one seat
	// for each Tasks slots.
	Tasks int
	// End is when the process ends. A task with a later deadline is left to the next
	// dispatcher.
	End time.Time
	// Call calls the next dispatcher.
	Call CallDispatcher
}

// The times of a shift.
const (
	// holdersInterval is how often a dispatcher reads which tasks hold slots of its pool. A task
	// that gets a slot by a commit of another process waits at most that long.
	holdersInterval = 500 * time.Millisecond
	// seatTime is the time after which the seat of a dead dispatcher is free. A live dispatcher
	// renews its seat every seatEvery.
	seatTime  = 30 * time.Second
	seatEvery = 10 * time.Second
	// seenFor is how long a task counts as served by another dispatcher before its record is
	// read again.
	seenFor = 5 * time.Second
	// idleReads is the number of successive reads without a task after which a shift ends.
	idleReads = 2
	// freshFor is how long a shift takes tasks with a deadline after its end: a new dispatcher
	// would not have more time for them.
	freshFor = 30 * time.Second
)

// shift is the period in which a dispatcher takes the tasks of one pool. Dispatcher.mu locks
// hasSeat, retired and late.
type shift struct {
	*Dispatcher
	pool   run.PoolRef
	cfg    ShiftConfig
	wakeUp chan struct{}
	seen   map[run.Ref]seenTask // used by one goroutine

	began   time.Time
	seat    port.Seat
	keptAt  time.Time
	hasSeat bool
	retired bool // it had a seat, and takes no more tasks
	late    bool // a task waits with a deadline after End
}

// seenTask is a task that another dispatcher serves.
type seenTask struct {
	replica string
	at      time.Time
}

// accepts reports whether a shift takes a task while it serves active others. A nil shift takes
// every task.
func (c *shift) accepts(r run.Run, active int, now time.Time) bool {
	switch {
	case c == nil:
		return true
	case !c.hasSeat:
		return false
	case r.AnswerBy().After(c.cfg.End) && now.Sub(c.began) >= freshFor:
		c.late = true
		c.wake()
		return false
	}
	return active < c.cfg.Tasks
}

// wake makes the shift read the slots of its pool at once, instead of after holdersInterval.
func (c *shift) wake() {
	if c == nil {
		return
	}
	select {
	case c.wakeUp <- struct{}{}:
	default:
	}
}

// Shift serves the tasks of a pool until it has no more, and then returns. It replaces Run in a
// process that another process calls. With a seat, it serves the tasks that hold slots of the
// pool. Before a task could outlive the process, it releases the seat and calls the next
// dispatcher. Without a free seat, other dispatchers serve the pool; Shift then does only the
// work for call.Run that needs no engine. After an error the call should be repeated.
func (s *Dispatcher) Shift(ctx context.Context, call DispatchCall, cfg ShiftConfig) error {
	c := &shift{
		Dispatcher: s, pool: run.PoolRef{Tenant: call.Tenant, ID: call.Pool}, cfg: cfg, wakeUp: make(chan struct{}, 1), seen: map[run.Ref]seenTask{},
	}
	pool, err := s.capacity.Pools.ForRun(ctx, call.Tenant, call.Pool)
	if err != nil {
		return err
	}
	seats := max((pool.Limit+cfg.Tasks-1)/cfg.Tasks, 1)
	if c.seat, c.hasSeat, err = cfg.Seats.TakeSeat(ctx, "dispatch/"+call.Tenant+"/"+call.Pool, seats, s.now().Add(seatTime)); err != nil {
		return fmt.Errorf("cannot take a seat of pool %s: %w", call.Pool, err)
	}
	c.began, c.keptAt = s.now(), s.now()
	s.mu.Lock()
	s.shift = c
	s.mu.Unlock()
	serving, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.Run(serving) })
	<-s.Ready()
	defer running.Wait()
	defer stop()
	if call.Run != "" {
		s.startConduct(run.Ref{Tenant: call.Tenant, ID: call.Run})
	}
	return c.work(ctx, pool.Limit)
}

// work starts the tasks of the pool until there are no more, or until the shift has retired and
// its last task has ended.
func (c *shift) work(ctx context.Context, limit int) error {
	for idle := 0; ; {
		c.mu.Lock()
		taking, late, doing := c.hasSeat, c.late, c.startedGoroutines
		c.mu.Unlock()
		switch {
		case !taking && doing == 0:
			return nil
		case taking && (late || !c.renewSeat(ctx)):
			c.retire(ctx)
			c.handOver(ctx, DispatchCall{Tenant: c.pool.Tenant, Pool: c.pool.ID})
			continue
		case taking:
			found, err := c.unservedTasks(ctx, limit)
			if err != nil && ctx.Err() == nil {
				c.log.WarnContext(ctx, "cannot look for the tasks of a pool; the next look does", "pool", c.pool.ID, "error", err.Error())
			}
			for _, r := range found {
				c.startConduct(r.Ref())
			}
			if idle++; len(found) > 0 || doing > 0 || err != nil {
				idle = 0
			}
			if idle >= idleReads {
				return c.leave(ctx, limit)
			}
		}
		if err := c.pause(ctx); err != nil {
			c.retire(context.WithoutCancel(ctx))
			return nil //nolint:nilerr // the process ends; what it served is lost, and found as after a crash
		}
	}
}

// leave ends a shift without tasks. It releases the seat and then reads the slots again. It
// calls the next dispatcher for a task that got its slot before the seat was free.
func (c *shift) leave(ctx context.Context, limit int) error {
	c.retire(ctx)
	found, err := c.unservedTasks(ctx, limit)
	if err != nil {
		return err
	}
	for _, r := range found {
		c.handOver(ctx, callFor(r))
	}
	return nil
}

func (c *shift) pause(ctx context.Context) error {
	timer, stop := c.clock.NewTimer(holdersInterval)
	defer stop()
	select {
	case <-timer:
	case <-c.wakeUp:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// renewSeat renews the seat every seatEvery. It returns false if another dispatcher may have the
// seat.
func (c *shift) renewSeat(ctx context.Context) bool {
	now := c.now()
	if now.Sub(c.keptAt) < seatEvery {
		return true
	}
	ok, err := c.cfg.Seats.KeepSeat(ctx, c.seat, now.Add(seatTime))
	if err != nil {
		c.log.WarnContext(ctx, "cannot keep the seat of a dispatcher", "pool", c.pool.ID, "error", err.Error())
		return now.Sub(c.keptAt) < seatTime
	}
	c.keptAt = now
	return ok
}

// retire stops taking tasks and releases the seat. The tasks that it serves continue.
func (c *shift) retire(ctx context.Context) {
	c.mu.Lock()
	taking := c.hasSeat
	c.hasSeat, c.retired = false, c.retired || taking
	c.mu.Unlock()
	if !taking {
		return
	}
	if err := c.cfg.Seats.LeaveSeat(ctx, c.seat); err != nil {
		c.log.WarnContext(ctx, "cannot leave the seat of a dispatcher; it is free after a while", "pool", c.pool.ID, "error", err.Error())
	}
}

// handOver calls the next dispatcher. It logs an error; a sweep calls again.
func (c *shift) handOver(ctx context.Context, call DispatchCall) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	if err := c.cfg.Call(ctx, call); err != nil {
		c.log.WarnContext(ctx, "cannot call the next dispatcher; a sweep does", "pool", call.Pool, "error", err.Error())
	}
}

// passOn calls the next dispatcher for a run with a slot, if this one has retired and does not
// serve the run.
func (c *shift) passOn(ctx context.Context, t *serving) {
	if c == nil {
		return
	}
	c.mu.Lock()
	retired := c.retired && c.active[t.run.TaskID] == nil
	c.mu.Unlock()
	if retired {
		c.handOver(ctx, callFor(t.run))
	}
}

// unservedTasks returns the runs with a slot of the pool that no dispatcher serves. For the
// others, it stores the number of tasks of other dispatchers by replica.
func (c *shift) unservedTasks(ctx context.Context, limit int) (waiting []run.Run, err error) {
	holders, err := c.store.Holders(ctx, c.pool.Tenant, c.pool.ID, max(limit, 1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the slots of pool %s: %w", c.pool.ID, err)
	}
	now, seen, others := c.now(), map[run.Ref]seenTask{}, map[string]int{}
	for _, ref := range holders {
		if c.isServing(ref) {
			continue
		}
		known, ok := c.seen[ref]
		if !ok || now.Sub(known.at) >= seenFor {
			r, err := c.store.Load(ctx, ref)
			if errors.Is(err, port.ErrNotFound) {
				continue
			}
			if err != nil {
				return waiting, fmt.Errorf("cannot read a task of pool %s: %w", c.pool.ID, err)
			}
			if r.State == run.ContainerCreating && !r.Queued() {
				waiting = append(waiting, r)
				continue
			}
			known = seenTask{r.Attempt.Replica, now}
		}
		seen[ref] = known
		if known.replica != "" {
			others[known.replica]++
		}
	}
	c.seen = seen
	c.replicas.SetOtherTasks(others)
	return waiting, c.dropEnded(ctx, holders)
}

// dropEnded interrupts attempts that this dispatcher serves and that another process has ended:
// their runs no longer have a slot.
func (c *shift) dropEnded(ctx context.Context, holders []run.Ref) error {
	c.mu.Lock()
	var without []run.Ref
	for _, t := range c.active {
		if !slices.Contains(holders, t.ref) {
			without = append(without, t.ref)
		}
	}
	c.mu.Unlock()
	for _, ref := range without {
		if err := c.interruptStored(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

// ongoing returns the shift; nil for a dispatcher that serves all pools.
func (s *attempts) ongoing() *shift {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shift
}

// isServing reports whether the dispatcher serves a run.
func (s *attempts) isServing(ref run.Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[ref.ID] != nil // the id of a task of kind inference is that of its run
}
