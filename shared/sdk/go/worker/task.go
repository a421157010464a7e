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

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Task is one attempt at a task, from started to completed. Start returns it. Its
// methods are safe for concurrent use.
type Task struct {
	assignment Assignment
	options    Options
	http       *http.Client
	timing     timing

	ctx          context.Context //nolint:containedctx // the work's
	cancel       context.CancelCauseFunc
	background   context.Context //nolint:containedctx // of the goroutines, until Close
	end          func()
	goroutines   sync.WaitGroup
	heartbeatNow chan struct{} // requests a heartbeat; holds at most one request
	progressed   chan struct{} // the progress may have changed; holds at most one signal
	answered     chan struct{} // closed by the answer to a heartbeat after SIGTERM
	accepted     chan struct{} // closed when the control plane has answered started

	sender *sender // nil if the work does not send its output

	mu              sync.Mutex
	grant           contract.TokenRenewal // the newest
	progress        progress
	delivered       progress // by the last heartbeat
	phase           string
	cancelRequested bool
	uploaded        *contract.TaskOutput
	logUploaded     bool
	flush           flushed
}

// Start sends started and begins to send heartbeats. It retries until the control plane
// responds. The error wraps ErrCancelled, ErrEnded, ErrExpired or ErrMismatch if the work must
// not be done. It wraps ErrTerminated or the cause of ctx if that came first.
//
// The context of the task ends with ctx. If the error is nil, the caller must
// call Close.
func Start(ctx context.Context, a Assignment, o Options) (*Task, error) {
	o, release := o.withDefaults()
	client := *o.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t := &Task{
		assignment: a, options: o, http: &client, timing: timingOf(a.Envelope),
		heartbeatNow: make(chan struct{}, 1), progressed: make(chan struct{}, 1), answered: make(chan struct{}), accepted: make(chan struct{}),
		progress: progress{percent: -1}, delivered: progress{percent: -1},
	}
	if e := a.Envelope; e != nil {
		t.grant = contract.TokenRenewal{TaskToken: e.TaskToken, TokenExpiresAt: e.TokenExpiresAt, Output: e.Output, Log: e.Log}
	}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	var end context.CancelFunc
	t.background, end = context.WithCancel(context.WithoutCancel(ctx))
	if a.Envelope != nil && o.SendsOutput {
		t.sender = newSender(t.background, t.options.Clock.Now)
	}
	t.end = func() {
		end()
		t.cancel(context.Canceled)
		t.goroutines.Wait()
		release()
	}
	t.goroutines.Go(t.watch)
	if a.Envelope != nil {
		if err := t.started(); err != nil {
			t.Close()
			return nil, fmt.Errorf("cannot start the work: %w", err)
		}
		close(t.accepted)
		t.goroutines.Go(t.sendHeartbeats)
		if t.sender != nil {
			t.goroutines.Go(t.sendOutput)
		}
	}
	return t, nil
}

// Close ends the heartbeats and the context of the task and waits for the
// goroutines. It may be called more than once.
func (t *Task) Close() { t.end() }

// Context returns the context of the work. It ends, with a cause, when the work
// must stop.
func (t *Task) Context() context.Context { return t.ctx }

// ID returns the task id.
func (t *Task) ID() string { return t.assignment.TaskID }

// WorkerID returns the name that the worker has in its calls.
func (t *Task) WorkerID() string { return t.options.WorkerID }

// Envelope returns the envelope without its token and URLs. It returns false if the worker was
// started with only CALLBACK_URL.
func (t *Task) Envelope() (contract.TaskEnvelope, bool) {
	if t.assignment.Envelope == nil {
		return contract.TaskEnvelope{}, false
	}
	e := *t.assignment.Envelope
	e.TaskToken, e.Output, e.Log = "", nil, nil
	return e, true
}

// Grace returns how long the work may take to return after its context has ended: four fifths
// of the envelope's cancelGracePeriodMs, at most 1 s if no more is reported, and at most 4 s
// after the deadline.
func (t *Task) Grace() time.Duration {
	grace, cause := t.timing.grace/5*4, context.Cause(t.ctx)
	switch {
	case abandoned(cause):
		return min(grace, abortGrace)
	case errors.Is(cause, ErrDeadline):
		return min(grace, limit.MaxReportMargin/5*4)
	}
	return grace
}

const (
	// abortGrace is the grace period of work that is no longer reported.
	abortGrace = time.Second
	// minRetry is how long a result is retried at least, even if it came at the deadline.
	minRetry = time.Minute
)

// Progress sets the progress that heartbeats report: percent from 0 to 100, or
// negative for unknown, and a message of at most 2 KiB. A larger percent is
// reported as 100, and a longer message is cut. A change is sent within a second
// and no more than once a second. Progress makes no call itself and is cheap
// enough for an inner loop.
func (t *Task) Progress(percent int, message string) {
	p := progress{max(-1, min(percent, 100)), message}
	t.mu.Lock()
	changed := t.progress != p
	t.progress = p
	t.mu.Unlock()
	if changed {
		t.signalProgress()
	}
}

// Phase sets the name of the current phase of the work. completed reports it with outcome
// CANCELLED.
func (t *Task) Phase(name string) {
	t.mu.Lock()
	t.phase = name
	t.mu.Unlock()
}

// endpoint returns the URL of a call (WC-1).
func (t *Task) endpoint(name string) string {
	e := t.assignment.Envelope
	return strings.TrimRight(e.CallbackBaseURL, "/") + "/v1/tasks/" + url.PathEscape(e.TaskID) + "/" + name
}

// call posts to an endpoint with the newest token.
func (t *Task) call(ctx context.Context, name string, body any) (answer, error) {
	t.mu.Lock()
	token := t.grant.TaskToken
	t.mu.Unlock()
	return t.post(ctx, t.endpoint(name), token, body, t.timing.callTimeout())
}

func (t *Task) started() error {
	now := t.options.Clock.Now()
	body := contract.TaskStarted{
		Attempt: t.assignment.Envelope.Attempt, WorkerID: t.options.WorkerID,
		StartedAt: now.UTC(), HandlesSigterm: t.options.Terminated != nil,
		SendsOutput: t.sender != nil,
	}
	return t.retry(t.ctx, t.resultUntil(now, t.retryUntil(now)), "started", func(ctx context.Context) error {
		a, err := t.call(ctx, "started", body)
		if err != nil || a.ok() {
			return err
		}
		if cause := causeOf(a); cause != nil {
			return cause
		}
		return a.err()
	})
}

// retryUntil returns when the retries of a call that starts now end.
func (t *Task) retryUntil(now time.Time) time.Time {
	if e := t.assignment.Envelope; e != nil && !e.Deadline.IsZero() {
		if least := now.Add(minRetry); e.Deadline.Before(least) {
			return least
		}
		return e.Deadline
	}
	return now.Add(t.options.ReportTimeout)
}

// resultUntil returns when the retries of started, or of a call that delivers the result, end.
func (t *Task) resultUntil(now time.Time, until time.Time) time.Time {
	if limit := now.Add(t.options.ResultTimeout); t.options.ResultTimeout > 0 && limit.Before(until) {
		return limit
	}
	return until
}

// watch ends the context of the work on SIGTERM and at the attempt's deadline. At the deadline
// it first waits for the response to started, so that the timeout is reported.
func (t *Task) watch() {
	var limited, deadline <-chan time.Time
	accepted := t.accepted
	if left := t.timeLeft(); left > 0 {
		timer, stop := t.options.Clock.NewTimer(left - limit.ReportMargin(left))
		defer stop()
		limited = timer
	}
	terminated := t.options.Terminated
	for {
		select {
		case <-t.background.Done():
			return
		case <-accepted:
			accepted, deadline = nil, limited
		case <-deadline:
			t.cancel(ErrDeadline)
		case <-terminated:
			terminated = nil
			t.cancel(ErrTerminated)
			t.requestHeartbeat()
		}
	}
}

// timeLeft returns the time until the deadline, or the time limit if that is shorter, because
// the limit starts with the machine. 0 means no limit. For a deadline in the past it returns a
// nanosecond.
func (t *Task) timeLeft() time.Duration {
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

// requestHeartbeat makes sendHeartbeats send a heartbeat at once.
func (t *Task) requestHeartbeat() {
	select {
	case t.heartbeatNow <- struct{}{}:
	default:
	}
}

func (t *Task) terminated() bool { return errors.Is(context.Cause(t.ctx), ErrTerminated) }
