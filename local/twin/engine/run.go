package engine

import (
	"context"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/twin/asl"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// writeRetryDelay is the delay before a failed write is retried.
const writeRetryDelay = time.Second

// firings is the number of deadlines that are handled concurrently, so that
// they share commits.
const firings = 64

// Run drives the executions until ctx ends: it makes invocations and fires
// deadlines. It returns after its last invocation has returned. Only one Run or
// Step may be active.
func (e *Engine) Run(ctx context.Context) error {
	crew := goroutinePool{tasks: make(chan func())}
	defer func() {
		crew.working.Wait()
		if err := e.save(context.WithoutCancel(ctx)); err != nil {
			e.config.Log.ErrorContext(ctx, "the last results of functions could not be stored; these are called again", "error", err)
		}
	}()
	calls := make(chan struct{}, e.config.Concurrency)
	fires := make(chan struct{}, firings)
	saves := make(chan struct{}, 1)
	for ctx.Err() == nil {
		for len(calls) < cap(calls) {
			c, ok := e.nextCall()
			if !ok {
				break
			}
			calls <- struct{}{}
			crew.do(ctx, func() {
				defer func() { <-calls; e.nudge() }()
				e.perform(ctx, c)
			})
		}
		for len(fires) < cap(fires) {
			en, ok := e.nextDue()
			if !ok {
				break
			}
			fires <- struct{}{}
			crew.do(ctx, func() {
				defer func() { <-fires; e.nudge() }()
				e.fire(ctx, en)
			})
		}
		if at, ok := e.nextSave(); ok && !at.After(e.config.Clock.Now()) && len(saves) == 0 {
			saves <- struct{}{}
			crew.do(ctx, func() {
				defer func() { <-saves; e.nudge() }()
				e.saveOrPause(ctx)
			})
		}
		e.rest(ctx, len(fires) == cap(fires), len(saves) == cap(saves))
	}
	return nil
}

// goroutinePool runs tasks in goroutines that it keeps until ctx ends. A new goroutine would
// have to grow its stack for each task.
type goroutinePool struct {
	working sync.WaitGroup
	tasks   chan func()
}

// do runs a task in an idle goroutine of the pool, or in a new one.
func (c *goroutinePool) do(ctx context.Context, task func()) {
	select {
	case c.tasks <- task:
		return
	default:
	}
	c.working.Go(func() {
		for task := task; ; {
			task()
			select {
			case task = <-c.tasks:
			case <-ctx.Done():
				return
			}
		}
	})
}

// rest waits for work. If busy is true, the pending deadlines are already being handled. If
// saving is true, results are being stored.
func (e *Engine) rest(ctx context.Context, busy, saving bool) {
	var due <-chan time.Time
	at, ok := e.nextDeadline()
	ok = ok && !busy
	if save, waits := e.nextSave(); waits && !saving && (!ok || save.Before(at)) {
		at, ok = save, true
	}
	if ok {
		fired, stop := e.config.Clock.NewTimer(at.Sub(e.config.Clock.Now()))
		defer stop()
		due = fired
	}
	select {
	case <-ctx.Done():
	case <-e.wake:
	case <-due:
	}
}

// perform makes the call and stores its result. It retries the write until it succeeds or ctx
// ends.
func (e *Engine) perform(ctx context.Context, c call) {
	if c.entry.ended() {
		return
	}
	result, err := e.invoke(ctx, c)
	if err != nil {
		return // interrupted: it counts as not ended
	}
	// The result is stored even if ctx ends before that.
	for {
		err := e.returned(context.WithoutCancel(ctx), c.entry, result)
		if err == nil {
			return
		}
		e.config.Log.ErrorContext(ctx, "the result of a function could not be stored", "state", c.invocation.State, "error", err)
		if !e.pause(ctx) {
			return
		}
	}
}

func (e *Engine) saveOrPause(ctx context.Context) {
	if err := e.save(context.WithoutCancel(ctx)); err != nil {
		e.config.Log.ErrorContext(ctx, "results of functions could not be stored", "error", err)
		e.pause(ctx)
	}
}

func (e *Engine) pause(ctx context.Context) bool {
	return clock.Sleep(ctx, e.config.Clock, writeRetryDelay) == nil
}

// fire applies the current time to the execution.
func (e *Engine) fire(ctx context.Context, en *entry) {
	for {
		err := e.tick(ctx, en)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			e.config.Log.ErrorContext(ctx, "a deadline could not be stored", "error", err)
		}
		if !e.pause(ctx) {
			return
		}
	}
}

func (e *Engine) tick(ctx context.Context, en *entry) error {
	_, err := e.change(ctx, en, func(x *asl.Execution, env asl.Env) ([]asl.Invocation, bool) {
		if due, ok := x.Deadline(); !ok || due.After(env.Now) {
			// A heartbeat has extended the deadline.
			e.mu.Lock()
			defer e.mu.Unlock()
			if ok {
				e.timers.set(en, milli(due))
			}
			return nil, false
		}
		return x.Tick(env), true
	})
	return err
}

func (e *Engine) nextCall() (call, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.calls) == 0 {
		e.calls = nil
		return call{}, false
	}
	c := e.calls[0]
	e.calls[0] = call{}
	e.calls = e.calls[1:]
	return c, true
}

// nextDue removes the first deadline that is due. The caller calls tick until
// it succeeds, which adds the next deadline.
func (e *Engine) nextDue() (*entry, bool) {
	now := milli(e.config.Clock.Now())
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.timers) == 0 || e.timers[0].due > now {
		return nil, false
	}
	en := e.timers[0]
	e.timers.set(en, 0)
	return en, true
}

func (e *Engine) nextDeadline() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.timers) == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(e.timers[0].due).UTC(), true
}

// Step does all due work in this goroutine and in a fixed order: invocations in the order of
// their creation, then deadlines. It reports whether there was work. After an error, the next
// Step repeats the failed work.
func (e *Engine) Step(ctx context.Context) (worked bool, err error) {
	if err := e.saveDue(ctx); err != nil {
		return false, err
	}
	for {
		if c, ok := e.nextCall(); ok {
			worked = true
			if err := e.stepCall(ctx, c); err != nil {
				return worked, err
			}
			continue
		}
		en, ok := e.nextDue()
		if !ok {
			return worked, nil
		}
		worked = true
		due := milli(e.config.Clock.Now())
		if err := e.tick(ctx, en); err != nil {
			e.mu.Lock()
			e.timers.set(en, due)
			e.mu.Unlock()
			return worked, err
		}
	}
}

// stepCall puts an interrupted call back at the front, so that it is repeated as after a crash.
func (e *Engine) stepCall(ctx context.Context, c call) error {
	if c.entry.ended() {
		return nil
	}
	result, err := e.invoke(ctx, c)
	if err == nil {
		err = e.returned(ctx, c.entry, result)
	}
	if err != nil {
		e.mu.Lock()
		e.calls = append([]call{c}, e.calls...)
		e.mu.Unlock()
	}
	return err
}

// NextDue returns the time at which Step has work: now if an invocation is pending. It returns
// false if only a Start or a token can continue an execution.
func (e *Engine) NextDue() (time.Time, bool) {
	e.mu.Lock()
	waiting := len(e.calls) > 0
	e.mu.Unlock()
	if waiting {
		return e.config.Clock.Now(), true
	}
	return e.nextDeadline()
}
