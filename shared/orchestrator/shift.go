package orchestrator

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
	// Seats has a room for each pool, with a seat for each dispatcher that takes its tasks.
	Seats port.Seats
	// Tasks is how many tasks one dispatcher serves at a time, so that a pool has one seat
	// for each of that many slots.
	Tasks int
	// End is when the process ends. A task with a later deadline is left to the next
	// dispatcher.
	End time.Time
	// Call calls the next dispatcher.
	Call CallDispatcher
}

// The times of a shift.
const (
	// lookEvery is how often a dispatcher reads who has the slots of its pool: a task that
	// got one by a commit of another process waits that long at most.
	lookEvery = 500 * time.Millisecond
	// seatTime is after how long the seat of a dispatcher that is gone is free; it is kept
	// with seatEvery.
	seatTime  = 30 * time.Second
	seatEvery = 10 * time.Second
	// seenFor is how long it is believed that another dispatcher serves a task.
	seenFor = 5 * time.Second
	// idleLooks is how many looks without a task end a shift.
	idleLooks = 2
	// freshFor is how long a shift takes tasks of any deadline: the next dispatcher could do
	// no better.
	freshFor = 30 * time.Second
)

// shift is the time in which a dispatcher takes the tasks of one pool. Dispatcher.mu locks
// its fields after cfg.
type shift struct {
	pool  run.PoolRef
	cfg   ShiftConfig
	woken chan struct{}
	seen  map[run.Ref]seenTask // used by one goroutine

	began   time.Time
	seat    port.Seat
	keptAt  time.Time
	taking  bool // it has a seat
	retired bool // it had one
	late    bool // a task waits whose deadline is behind the end
}

// seenTask is a task of another dispatcher.
type seenTask struct {
	replica string
	at      time.Time
}

// accepts reports whether a shift takes a task beside active ones; nil takes all.
func (c *shift) accepts(r run.Run, active int, now time.Time) bool {
	switch {
	case c == nil:
		return true
	case !c.taking:
		return false
	case r.AnswerBy().After(c.cfg.End) && now.Sub(c.began) >= freshFor:
		c.late = true
		c.wake()
		return false
	}
	return active < c.cfg.Tasks
}

// wake lets the shift look at once.
func (c *shift) wake() {
	if c == nil {
		return
	}
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// Shift serves the tasks of a pool until it has none, and returns then. It replaces Run, for
// a process that another one calls. Without a free seat, others serve the pool: then it does
// only what call.Run needs besides an engine. A seat-holder takes the tasks that it finds in
// the slots of the pool, and leaves the seat to the next dispatcher, which it calls, before
// a task could outlive it. An error means that the call should be repeated.
func (s *Dispatcher) Shift(ctx context.Context, call DispatchCall, cfg ShiftConfig) error {
	c := &shift{
		pool: run.PoolRef{Tenant: call.Tenant, ID: call.Pool}, cfg: cfg, woken: make(chan struct{}, 1), seen: map[run.Ref]seenTask{},
	}
	pool, err := s.pools.forRun(ctx, call.Tenant, call.Pool)
	if err != nil {
		return err
	}
	seats := max((pool.Limit+cfg.Tasks-1)/cfg.Tasks, 1)
	if c.seat, c.taking, err = cfg.Seats.TakeSeat(ctx, "dispatch/"+call.Tenant+"/"+call.Pool, seats, s.now().Add(seatTime)); err != nil {
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
	return s.work(ctx, c, pool.Limit)
}

// work looks for tasks until there is nothing to do.
func (s *Dispatcher) work(ctx context.Context, c *shift, limit int) error {
	for idle := 0; ; {
		s.mu.Lock()
		taking, late, doing := c.taking, c.late, s.doing
		s.mu.Unlock()
		switch {
		case !taking && doing == 0:
			return nil
		case taking && (late || !s.keep(ctx, c)):
			s.retire(ctx, c)
			s.handOver(ctx, DispatchCall{Tenant: c.pool.Tenant, Pool: c.pool.ID})
			continue
		case taking:
			found, err := s.look(ctx, c, limit)
			if err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "cannot look for the tasks of a pool; the next look does", "pool", c.pool.ID, "error", err.Error())
			}
			for _, r := range found {
				s.startConduct(r.Ref())
			}
			if idle++; len(found) > 0 || doing > 0 || err != nil {
				idle = 0
			}
			if idle >= idleLooks {
				return s.leave(ctx, c, limit)
			}
		}
		if err := s.pause(ctx, c); err != nil {
			s.retire(context.WithoutCancel(ctx), c)
			return nil //nolint:nilerr // the process ends; what it served is lost, and found as after a crash
		}
	}
}

// leave ends a shift without tasks. A task that got its slot while the seat was taken is
// found after the seat is free, and the next dispatcher is called for it.
func (s *Dispatcher) leave(ctx context.Context, c *shift, limit int) error {
	s.retire(ctx, c)
	found, err := s.look(ctx, c, limit)
	if err != nil {
		return err
	}
	for _, r := range found {
		s.handOver(ctx, callFor(r))
	}
	return nil
}

func (s *Dispatcher) pause(ctx context.Context, c *shift) error {
	timer, stop := s.clock.NewTimer(lookEvery)
	defer stop()
	select {
	case <-timer:
	case <-c.woken:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// keep keeps the seat. It reports false if another dispatcher may have it.
func (s *Dispatcher) keep(ctx context.Context, c *shift) bool {
	now := s.now()
	if now.Sub(c.keptAt) < seatEvery {
		return true
	}
	ok, err := c.cfg.Seats.KeepSeat(ctx, c.seat, now.Add(seatTime))
	if err != nil {
		s.log.WarnContext(ctx, "cannot keep the seat of a dispatcher", "pool", c.pool.ID, "error", err.Error())
		return now.Sub(c.keptAt) < seatTime
	}
	c.keptAt = now
	return ok
}

// retire takes no further task, and frees the seat. The tasks that it serves continue.
func (s *Dispatcher) retire(ctx context.Context, c *shift) {
	s.mu.Lock()
	taking := c.taking
	c.taking, c.retired = false, c.retired || taking
	s.mu.Unlock()
	if !taking {
		return
	}
	if err := c.cfg.Seats.LeaveSeat(ctx, c.seat); err != nil {
		s.log.WarnContext(ctx, "cannot leave the seat of a dispatcher; it is free after a while", "pool", c.pool.ID, "error", err.Error())
	}
}

// handOver calls the next dispatcher.
func (s *Dispatcher) handOver(ctx context.Context, call DispatchCall) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	if err := s.shift.cfg.Call(ctx, call); err != nil {
		s.log.WarnContext(ctx, "cannot call the next dispatcher; a sweep does", "pool", call.Pool, "error", err.Error())
	}
}

// passOn calls the next dispatcher for a run with a slot, if this one takes none any more.
func (s *Dispatcher) passOn(ctx context.Context, t *serving) {
	s.mu.Lock()
	retired := s.shift != nil && s.shift.retired && s.active[t.run.TaskID] == nil
	s.mu.Unlock()
	if retired {
		s.handOver(ctx, callFor(t.run))
	}
}

// look returns the runs with a slot of the pool that no dispatcher serves, and notes on which
// replicas others serve the rest.
func (s *Dispatcher) look(ctx context.Context, c *shift, limit int) (waiting []run.Run, err error) {
	holders, err := s.store.Holders(ctx, c.pool.Tenant, c.pool.ID, max(limit, 1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the slots of pool %s: %w", c.pool.ID, err)
	}
	now, seen, others := s.now(), map[run.Ref]seenTask{}, map[string]int{}
	for _, ref := range holders {
		if s.has(ref) {
			continue
		}
		known, ok := c.seen[ref]
		if !ok || now.Sub(known.at) >= seenFor {
			r, err := s.store.Load(ctx, ref)
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
	s.replicas.have(others)
	return waiting, s.dropEnded(ctx, holders)
}

// dropEnded interrupts the attempts that this dispatcher serves and that another process has
// ended: their runs have no slot any more.
func (s *Dispatcher) dropEnded(ctx context.Context, holders []run.Ref) error {
	s.mu.Lock()
	var without []run.Ref
	for _, t := range s.active {
		if !slices.Contains(holders, t.ref) {
			without = append(without, t.ref)
		}
	}
	s.mu.Unlock()
	for _, ref := range without {
		if err := s.interruptStored(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether the dispatcher serves a run.
func (s *Dispatcher) has(ref run.Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[ref.ID] != nil // the id of a task of kind inference is that of its run
}
