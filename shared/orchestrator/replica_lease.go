package orchestrator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/series"
)

// lease is a slot of a replica.
type lease struct {
	*replica
	of *replicas
	id string
	// task is the task that has the slot.
	task string
	// others are the other replicas of the pool.
	others []*replica
	// deterministic: the pool generates the same answer to the same request.
	deterministic bool
	released      bool
}

// last reports whether all other replicas of the pool rest. The mutex of l.of is locked.
func (l *lease) last() bool {
	now := l.of.clock.Now()
	return !slices.ContainsFunc(l.others, func(other *replica) bool { return !now.Before(other.restUntil) })
}

// alone is last for a caller without the mutex.
func (l *lease) alone() bool {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return l.last()
}

// askAfter is how long what an engine has said about itself is used.
const askAfter = time.Minute

// ask asks the engine what it can do, if that is not known.
func (l *lease) ask(ctx context.Context) {
	l.of.mu.Lock()
	known := l.askedAt
	l.of.mu.Unlock()
	now := l.of.clock.Now()
	if !known.IsZero() && now.Sub(known) < askAfter {
		return
	}
	l.of.describe(ctx, l.replica)
}

// capabilities returns what the engine said last.
func (l *lease) capabilities() port.EngineCapabilities {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return l.can
}

// seed returns the seed of a request; a deterministic pool has one for requests without it.
func (l *lease) seed(requested *int64) *int64 {
	if requested == nil && l.deterministic {
		return new(int64)
	}
	return requested
}

// asks notes that the task has a request at the engine from now on, until done is called.
func (l *lease) asks() (done func()) {
	change := func(by int) {
		l.of.mu.Lock()
		defer l.of.mu.Unlock()
		l.asking += by
	}
	change(1)
	return func() { change(-1) }
}

// release gives the slot back, once.
func (l *lease) release() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.released {
		return
	}
	l.released = true
	l.held--
	l.of.notify()
}

// works notes that the replica has answered a request in part.
func (l *lease) works() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.readyAt = l.of.clock.Now()
}

// noted notes the result of a request. One that was cancelled, whose stream has ended, or that
// had no time left says nothing about the replica; one that the engine has refused as wrong
// shows that it works. The attempts of one task at the replica count once.
func (l *lease) noted(err error) {
	f, isFault := errors.AsType[*fault.Fault](err)
	answer, answered := errors.AsType[port.EngineAnswer](err)
	switch {
	case err != nil && !isFault, isFault && f.Code == fault.DeadlineUnmet:
	case err == nil, f.Code == fault.InvalidParams, f.Code == fault.ModelUnknown, answered && answer.Works():
		l.of.mu.Lock()
		l.failures, l.failed, l.served, l.readyAt = 0, nil, true, l.of.clock.Now()
		l.of.mu.Unlock()
	default:
		l.of.failed(l, answered)
	}
}

// awaitFree waits until the engine shows no more requests than this process has there and other
// dispatchers have tasks, at most slotGrace. An engine that keeps the request of a task that has
// ended rests. A slot without a request does not count: its task waits for the same, or has not
// asked yet.
func (l *lease) awaitFree(ctx context.Context) {
	until := l.of.clock.Now().Add(slotGrace)
	for looks := 0; ; looks++ {
		if free, known := l.isFree(ctx, until, looks > 0); free {
			return
		} else if !known || !l.of.clock.Now().Before(until) || clock.Sleep(ctx, l.of.clock, freeInterval) != nil {
			break
		}
	}
	l.of.mu.Lock()
	l.restUntil = l.of.clock.Now().Add(restMost)
	l.of.mu.Unlock()
	l.of.record(ctx, series.Count(series.SlotsLeaked, 1, l.key.pool))
	l.of.log.WarnContext(ctx, "a replica keeps the request of a task that has ended; it gets no tasks for a while",
		"pool", l.key.pool, "replica", l.id, "rest", restMost.String())
}

// isFree reports whether the engine shows no request besides those of others, or does not show
// them. A look after the first one, which saw a request, ends at until: an engine that does not
// answer then keeps the request, as far as is known.
func (l *lease) isFree(ctx context.Context, until time.Time, again bool) (free, known bool) {
	looking, over := ctx, func() {}
	if again {
		looking, over = clock.WithTimeout(ctx, l.of.clock, until.Sub(l.of.clock.Now()))
	}
	defer over()
	load, err := l.engine.Load(looking)
	if err != nil {
		late := looking.Err() != nil && ctx.Err() == nil
		return !late, false
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return load.Running == nil || *load.Running <= l.asking+l.of.others[l.key.id], true
}

// freeInterval is how often an engine is asked whether a slot is free.
const freeInterval = 50 * time.Millisecond
