package inferences

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// ServePoolConfig configures ServePool.
type ServePoolConfig struct {
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

// The times of a poolServer.
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
	// idleReads is the number of successive reads without a task after which a poolServer ends.
	idleReads = 2
	// freshFor is how long a poolServer accepts tasks with a deadline after its end: a new dispatcher
	// would not have more time for them.
	freshFor = 30 * time.Second
)

// poolServer serves the tasks of one pool, while its dispatcher holds a seat of the pool.
// Dispatcher.mu locks hasSeat, retired and hasLater.
type poolServer struct {
	*Dispatcher
	pool    platform.PoolRef
	cfg     ServePoolConfig
	readNow chan struct{}
	seen    map[run.Ref]seenTask // used by one goroutine

	began     time.Time
	seat      port.Seat
	renewedAt time.Time
	hasSeat   bool
	retired   bool // it had a seat, and takes no more tasks
	hasLater  bool // a task with a deadline after End waits for the next dispatcher
}

// seenTask is a task that another dispatcher serves.
type seenTask struct {
	replica string
	at      time.Time
}

// accepts reports whether to serve a task beside active others. A nil poolServer accepts every
// task.
func (c *poolServer) accepts(r run.Run, active int, now time.Time) bool {
	switch {
	case c == nil:
		return true
	case !c.hasSeat || c.pool != poolOf(r):
		return false
	case r.AnswerBy().After(c.cfg.End) && now.Sub(c.began) >= freshFor:
		c.hasLater = true
		c.readSlots()
		return false
	}
	return active < c.cfg.Tasks
}

// poolOf identifies the pool of a run.
func poolOf(r run.Run) platform.PoolRef { return platform.PoolRef{Tenant: r.Tenant, ID: r.Slot.Pool} }

// readSlots ends the pause of work, which then reads the slots of the pool.
func (c *poolServer) readSlots() {
	if c == nil {
		return
	}
	select {
	case c.readNow <- struct{}{}:
	default:
	}
}

// ServePool serves the tasks of a pool until it has no more, and then returns. It replaces Run in a
// process that another process calls. With a seat, it serves the tasks that hold slots of the
// pool. Before a task could outlive the process, it releases the seat and calls the next
// dispatcher. Without a free seat, other dispatchers serve the pool; ServePool then does only the
// work for call.Run that needs no engine. After an error the call should be repeated.
func (s *Dispatcher) ServePool(ctx context.Context, call DispatchCall, cfg ServePoolConfig) error {
	c := &poolServer{
		Dispatcher: s, pool: platform.PoolRef{Tenant: call.Tenant, ID: call.Pool}, cfg: cfg, readNow: make(chan struct{}, 1), seen: map[run.Ref]seenTask{},
	}
	pool, err := s.capacity.Pools.ForRun(ctx, call.Tenant, call.Pool)
	if err != nil {
		return err
	}
	seats := max((pool.Limit+cfg.Tasks-1)/cfg.Tasks, 1)
	if c.seat, c.hasSeat, err = cfg.Seats.TakeSeat(ctx, "dispatch/"+call.Tenant+"/"+call.Pool, seats, s.now().Add(seatTime)); err != nil {
		return fmt.Errorf("cannot take a seat of pool %s: %w", call.Pool, err)
	}
	c.began, c.renewedAt = s.now(), s.now()
	s.mu.Lock()
	s.poolServer = c
	s.mu.Unlock()
	serving, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.Run(serving) })
	<-s.Ready()
	defer running.Wait()
	defer stop()
	if call.Run != "" {
		s.startAdvance(run.Ref{Tenant: call.Tenant, ID: call.Run})
	}
	return c.work(ctx, pool.Limit)
}

// work starts the tasks of the pool until there are no more, or until it has retired and
// its last task has ended.
func (c *poolServer) work(ctx context.Context, limit int) error {
	for idle := 0; ; {
		c.mu.Lock()
		taking, later, doing := c.hasSeat, c.hasLater, c.startedGoroutines
		c.mu.Unlock()
		switch {
		case !taking && doing == 0:
			return nil
		case taking && (later || !c.renewSeat(ctx)):
			c.retire(ctx)
			c.callNext(ctx, DispatchCall{Tenant: c.pool.Tenant, Pool: c.pool.ID})
			continue
		case taking:
			found, err := c.unservedTasks(ctx, limit)
			if err != nil && ctx.Err() == nil {
				c.log.WarnContext(ctx, "cannot look for the tasks of a pool; the next look does", "pool", c.pool.ID, "error", err.Error())
			}
			for _, r := range found {
				c.startAdvance(r.Ref())
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

// leave ends the service of a pool without tasks. It releases the seat and then reads the slots again. It
// calls the next dispatcher for a task that got its slot before the seat was free.
func (c *poolServer) leave(ctx context.Context, limit int) error {
	c.retire(ctx)
	found, err := c.unservedTasks(ctx, limit)
	if err != nil {
		return err
	}
	for _, r := range found {
		c.callNext(ctx, callFor(r))
	}
	return nil
}

func (c *poolServer) pause(ctx context.Context) error {
	timer, stop := c.clock.NewTimer(holdersInterval)
	defer stop()
	select {
	case <-timer:
	case <-c.readNow:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// renewSeat renews the seat every seatEvery. It returns false if another dispatcher may have the
// seat.
func (c *poolServer) renewSeat(ctx context.Context) bool {
	now := c.now()
	if now.Sub(c.renewedAt) < seatEvery {
		return true
	}
	ok, err := c.cfg.Seats.KeepSeat(ctx, c.seat, now.Add(seatTime))
	if err != nil {
		c.log.WarnContext(ctx, "cannot keep the seat of a dispatcher", "pool", c.pool.ID, "error", err.Error())
		return now.Sub(c.renewedAt) < seatTime
	}
	c.renewedAt = now
	return ok
}

// retire stops taking tasks and releases the seat. The tasks that it serves continue.
func (c *poolServer) retire(ctx context.Context) {
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

// callNext calls the next dispatcher. It logs an error; a sweep calls again.
func (c *poolServer) callNext(ctx context.Context, call DispatchCall) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	if err := c.cfg.Call(ctx, call); err != nil {
		c.log.WarnContext(ctx, "cannot call the next dispatcher; a sweep does", "pool", call.Pool, "error", err.Error())
	}
}

// callNextFor calls the next dispatcher for a run with a slot, if this one has retired or serves
// another pool, and does not serve the run.
func (c *poolServer) callNextFor(ctx context.Context, t *serving) {
	if c == nil {
		return
	}
	c.mu.Lock()
	other := (c.retired || c.pool != poolOf(t.run)) && c.active[t.run.TaskID] == nil
	c.mu.Unlock()
	if other {
		c.callNext(ctx, callFor(t.run))
	}
}

// unservedTasks returns the runs with a slot of the pool that no dispatcher serves. For the
// others, it stores the number of tasks of other dispatchers by replica.
func (c *poolServer) unservedTasks(ctx context.Context, limit int) (waiting []run.Run, err error) {
	holders, err := c.store.Holders(ctx, c.pool.Tenant, c.pool.ID, max(limit, 1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the slots of pool %s: %w", c.pool.ID, err)
	}
	now, seen, others := c.now(), map[run.Ref]seenTask{}, map[string]int{}
	for _, ref := range holders {
		if c.isServing(ref) {
			continue
		}
		known, unserved, err := c.look(ctx, ref, now)
		switch {
		case errors.Is(err, port.ErrNotFound):
			continue
		case err != nil:
			return waiting, fmt.Errorf("cannot read a task of pool %s: %w", c.pool.ID, err)
		case unserved != nil:
			waiting = append(waiting, *unserved)
			continue
		}
		seen[ref] = known
		if known.replica != "" {
			others[known.replica]++
		}
	}
	if err := c.lookBeside(ctx, now, seen, others); err != nil {
		return waiting, err
	}
	c.seen = seen
	c.replicas.SetOtherTasks(others)
	return waiting, c.dropEnded(ctx, holders)
}

// look returns the replica of a task with a slot, as it was read at most seenFor ago, or the task if no
// dispatcher serves it.
func (c *poolServer) look(ctx context.Context, ref run.Ref, now time.Time) (known seenTask, unserved *run.Run, err error) {
	known, ok := c.seen[ref]
	if ok && now.Sub(known.at) < seenFor {
		return known, nil, nil
	}
	r, err := c.store.Load(ctx, ref)
	if err != nil {
		return known, nil, err
	}
	if r.State == run.ContainerCreating && !r.Queued() {
		return known, &r, nil
	}
	return seenTask{r.Attempt.Replica, now}, nil, nil
}

// lookBeside counts the tasks of the pools that share the replicas of the pool, by replica.
func (c *poolServer) lookBeside(ctx context.Context, now time.Time, seen map[run.Ref]seenTask, others map[string]int) error {
	for _, pool := range c.capacity.Pools.Sharing(c.pool) {
		holders, err := c.store.Holders(ctx, pool.Tenant, pool.ID, limit.PoolSlots)
		if err != nil {
			return fmt.Errorf("cannot read the slots of pool %s: %w", pool.ID, err)
		}
		for _, ref := range holders {
			known, unserved, err := c.look(ctx, ref, now)
			if errors.Is(err, port.ErrNotFound) || err == nil && unserved != nil {
				continue
			}
			if err != nil {
				return fmt.Errorf("cannot read a task of pool %s: %w", pool.ID, err)
			}
			if seen[ref] = known; known.replica != "" {
				others[known.replica]++
			}
		}
	}
	return nil
}

// dropEnded interrupts attempts that this dispatcher serves and that another process has ended:
// their runs no longer have a slot.
func (c *poolServer) dropEnded(ctx context.Context, holders []run.Ref) error {
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

// currentPool returns the poolServer; nil for a dispatcher that serves all pools.
func (s *attempts) currentPool() *poolServer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poolServer
}

// isServing reports whether the dispatcher serves a run.
func (s *attempts) isServing(ref run.Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[ref.ID] != nil // the id of a task of kind inference is that of its run
}
