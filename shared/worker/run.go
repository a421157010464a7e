package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// Func is the work of a worker. Its context ends when it is to stop; what it
// returns is reported: see Result, Fail and Task.Complete. A panic is a failure,
// USER_CODE with its stack trace.
type Func func(ctx context.Context, t *Task) (Result, error)

// Run does one task: started, the work with its heartbeats, completed. It
// returns nil where the work succeeded and the control plane knows; otherwise
// what failed. Work that does not return within Task.Grace after its context
// ended is given up, and goes on in the background: end the process then.
func Run(ctx context.Context, a Assignment, o Options, work Func) error {
	t, err := Start(ctx, a, o)
	if err != nil {
		return err
	}
	defer t.Close()
	r, failure := t.attend(work)
	finalState, err := t.Complete(context.WithoutCancel(ctx), r, failure)
	switch {
	case err != nil:
		t.options.Log.ErrorContext(ctx, "the task is not reported", "why", err.Error())
	case failure != nil:
		t.options.Log.ErrorContext(ctx, "the task failed", "why", failure.Error(), "final_state", finalState)
	default:
		t.options.Log.InfoContext(ctx, "the task is done", "final_state", finalState)
	}
	return errors.Join(failure, err)
}

// attend runs the work and waits for it, after the end of its context for the
// grace at most.
func (t *Task) attend(work Func) (Result, error) {
	type end struct {
		result Result
		err    error
	}
	done := make(chan end, 1)
	go func() {
		r, err := t.guard(work)
		done <- end{r, err}
	}()
	select {
	case e := <-done:
		return e.result, e.err
	case <-t.ctx.Done():
	}
	timer, stop := t.options.Clock.NewTimer(t.Grace())
	defer stop()
	select {
	case e := <-done:
		return e.result, e.err
	case <-timer:
		return Result{}, fmt.Errorf("the work did not stop in time: %w", context.Cause(t.ctx))
	}
}

// guard makes a failure of a panic.
func (t *Task) guard(work Func) (r Result, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			r, err = Result{}, &Failure{StackTrace: string(debug.Stack()), Err: fmt.Errorf("panic: %v", panicked)}
		}
	}()
	return work(t.ctx, t)
}
