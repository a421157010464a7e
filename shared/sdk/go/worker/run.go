package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// Func is the work of a worker. Its context ends when the work must stop; see context.Cause and
// the Err variables. Task.Complete reports its result. A panic is reported as a failure with
// category USER_CODE and the stack trace.
type Func func(ctx context.Context, t *Task) (Result, error)

// Run does one task: it sends started, runs work with heartbeats, and sends completed. It
// returns nil if the work succeeded and the control plane accepted the report. Otherwise it
// returns the error of the work, of the report, or both, joined.
//
// If work does not return within Task.Grace after its context ended, Run reports
// without it. The work's goroutine then still runs, so the process should exit.
func Run(ctx context.Context, a Assignment, o Options, work Func) error {
	t, err := Start(ctx, a, o)
	if err != nil {
		return err
	}
	defer t.Close()
	r, failure := t.await(work)
	finalState, err := t.Complete(context.WithoutCancel(ctx), r, failure)
	switch {
	case err != nil:
		t.options.Log.ErrorContext(ctx, "the task was not reported", "why", err.Error())
	case failure != nil:
		t.options.Log.ErrorContext(ctx, "the task failed", "why", failure.Error(), "final_state", finalState)
	default:
		t.options.Log.InfoContext(ctx, "the task succeeded", "final_state", finalState)
	}
	return errors.Join(failure, err)
}

// await runs the work and waits for it. After the context of the work has ended it waits at
// most for the grace period.
func (t *Task) await(work Func) (Result, error) {
	type returned struct {
		result Result
		err    error
	}
	done := make(chan returned, 1)
	go func() {
		r, err := t.callWork(work)
		done <- returned{r, err}
	}()
	select {
	case r := <-done:
		return r.result, r.err
	case <-t.ctx.Done():
	}
	timer, stop := t.options.Clock.NewTimer(t.Grace())
	defer stop()
	select {
	case r := <-done:
		return r.result, r.err
	case <-timer:
		return Result{}, fmt.Errorf("the work did not stop in time: %w", context.Cause(t.ctx))
	}
}

// callWork calls the work and converts a panic to a Failure.
func (t *Task) callWork(work Func) (r Result, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			r, err = Result{}, &Failure{StackTrace: string(debug.Stack()), Err: fmt.Errorf("panic: %v", panicked)}
		}
	}()
	return work(t.ctx, t)
}
