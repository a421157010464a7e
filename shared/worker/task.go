package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// Task is one attempt at a task, from started to completed. Its methods are
// safe for use by many goroutines.
type Task struct {
	assignment Assignment
	options    Options
	http       *http.Client
	pace       pace

	ctx        context.Context //nolint:containedctx // it is what the work is given
	cancel     context.CancelCauseFunc
	life       context.Context //nolint:containedctx // of the two goroutines, until Close
	end        func()
	heartbeats sync.WaitGroup
	ask        chan struct{} // wants a heartbeat now; one is enough
	heard      chan struct{} // closed by the answer to a heartbeat after SIGTERM

	mu       sync.Mutex
	link     contract.TokenRenewal // the newest
	told     told
	phase    string
	wished   bool
	uploaded *contract.TaskOutput
}

// told is what the next heartbeat says.
type told struct {
	percent int // -1 for unknown
	message string
}

// Start says that the attempt begins, and begins its heartbeats. It tries until
// the control plane answers; the error wraps a cause (ErrCancelled, ErrEnded,
// ErrExpired, ErrMismatch) where it answered that the work is not to be done,
// and ErrTerminated or the context's cause where that came first.
//
// The task's context ends with ctx. Close is due after a Start without error.
func Start(ctx context.Context, a Assignment, o Options) (*Task, error) {
	o, closing := o.withDefaults()
	client := *o.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t := &Task{
		assignment: a, options: o, http: &client, pace: paceOf(a.Envelope),
		ask: make(chan struct{}, 1), heard: make(chan struct{}), told: told{percent: -1},
	}
	if e := a.Envelope; e != nil {
		t.link = contract.TokenRenewal{TaskToken: e.TaskToken, TokenExpiresAt: e.TokenExpiresAt, Output: e.Output, Log: e.Log}
	}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	var end context.CancelFunc
	t.life, end = context.WithCancel(context.WithoutCancel(ctx))
	t.end = func() {
		end()
		t.cancel(context.Canceled)
		t.heartbeats.Wait()
		closing()
	}
	t.heartbeats.Go(t.watch)
	if a.Envelope != nil {
		if err := t.started(); err != nil {
			t.Close()
			return nil, fmt.Errorf("the work was not begun: %w", err)
		}
		t.heartbeats.Go(t.sendHeartbeats)
	}
	return t, nil
}

// Close ends the heartbeats and what is left of the task, and waits for it.
func (t *Task) Close() { t.end() }

// Context is the work's: it ends when the work is to stop, with a cause.
func (t *Task) Context() context.Context { return t.ctx }

// ID is the task's.
func (t *Task) ID() string { return t.assignment.TaskID }

// WorkerID is this worker's, the same in all that it sends.
func (t *Task) WorkerID() string { return t.options.WorkerID }

// Envelope is what the worker was started with, without its secrets; false
// where it knows the export contract alone.
func (t *Task) Envelope() (contract.TaskEnvelope, bool) {
	if t.assignment.Envelope == nil {
		return contract.TaskEnvelope{}, false
	}
	e := *t.assignment.Envelope
	e.TaskToken, e.Output, e.Log = "", nil, nil
	return e, true
}

// Grace is how long the work has to return after its context ended.
func (t *Task) Grace() time.Duration {
	grace, cause := t.pace.grace/5*4, context.Cause(t.ctx)
	switch {
	case silent(cause):
		return min(grace, abortGrace)
	case errors.Is(cause, ErrDeadline):
		return min(grace, deadlineMargin/5*4)
	}
	return grace
}

// abortGrace is what work gets whose result nobody wants any more.
const abortGrace = time.Second

// Progress notes how far the work is, for the next heartbeat: percent from 0 to
// 100, beyond which it is bounded, a negative one is unknown; the message is cut
// at 2 KiB. It makes no call and is cheap enough for an inner loop.
func (t *Task) Progress(percent int, message string) {
	t.mu.Lock()
	t.told = told{max(-1, min(percent, 100)), message}
	t.mu.Unlock()
}

// Phase names what the work is doing, for a completed that says CANCELLED.
func (t *Task) Phase(name string) {
	t.mu.Lock()
	t.phase = name
	t.mu.Unlock()
}

// address is the endpoint of the worker contract (WC-1).
func (t *Task) address(what string) string {
	e := t.assignment.Envelope
	return strings.TrimRight(e.CallbackBaseURL, "/") + "/v1/tasks/" + url.PathEscape(e.TaskID) + "/" + what
}

// call posts to an endpoint with the newest token.
func (t *Task) call(ctx context.Context, what string, body any) (answer, error) {
	t.mu.Lock()
	token := t.link.TaskToken
	t.mu.Unlock()
	return t.post(ctx, t.address(what), token, body, t.pace.callLimit())
}

func (t *Task) started() error {
	begun := t.options.Clock.Now()
	body := contract.TaskStarted{
		Attempt: t.assignment.Envelope.Attempt, WorkerID: t.options.WorkerID,
		StartedAt: begun.UTC(), HandlesSigterm: t.options.Terminated != nil,
	}
	return t.insist(t.ctx, t.patience(begun), "started", func(ctx context.Context) error {
		a, err := t.call(ctx, "started", body)
		if err != nil || a.ok() {
			return err
		}
		if cause := verdict(a); cause != nil {
			return cause
		}
		return a.err()
	})
}

// patience is until when something is tried from now on.
func (t *Task) patience(now time.Time) time.Time {
	if e := t.assignment.Envelope; e != nil && !e.Deadline.IsZero() {
		if least := now.Add(leastPatience); e.Deadline.Before(least) {
			return least
		}
		return e.Deadline
	}
	return now.Add(t.options.Patience)
}

// leastPatience is what a result gets that came at the deadline.
const leastPatience = time.Minute

// watch ends the work's context at SIGTERM and when the attempt's time is up.
func (t *Task) watch() {
	var limit <-chan time.Time
	if left := t.left(); left > 0 {
		timer, stop := t.options.Clock.NewTimer(left - min(deadlineMargin, left/10))
		defer stop()
		limit = timer
	}
	terminated := t.options.Terminated
	for {
		select {
		case <-t.life.Done():
			return
		case <-limit:
			t.cancel(ErrDeadline)
		case <-terminated:
			terminated = nil
			t.cancel(ErrTerminated)
			t.beatNow()
		}
	}
}

// left is what the attempt has of its time now: until the deadline, and no
// longer than its time limit, which begins with the machine. 0 is no limit, and
// what is over has a moment.
func (t *Task) left() time.Duration {
	e := t.assignment.Envelope
	if e == nil {
		return 0
	}
	left := time.Duration(e.Resources.TimeoutMS) * time.Millisecond
	if !e.Deadline.IsZero() {
		until := max(e.Deadline.Sub(t.options.Clock.Now()), time.Nanosecond)
		if left <= 0 || until < left {
			left = until
		}
	}
	return left
}

// deadlineMargin is what is kept of the attempt's time to say that it is over.
const deadlineMargin = 5 * time.Second

func (t *Task) beatNow() {
	select {
	case t.ask <- struct{}{}:
	default:
	}
}

func (t *Task) terminated() bool { return errors.Is(context.Cause(t.ctx), ErrTerminated) }
