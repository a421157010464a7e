package worker

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Output is sent every followedInterval while a client follows it, and every idleInterval
// otherwise. New output is held for a short time to gather more. Before the first response the
// worker does not know whether a client follows, so it sends early.
const (
	followedInterval = 2 * time.Second
	idleInterval     = 30 * time.Second
	gatherTime       = 100 * time.Millisecond
	// idleChunks is the number of chunks sent in each idleInterval after the first earlyTotal
	// bytes.
	idleChunks = 4
	// outputTimeout limits FlushOutput.
	outputTimeout = 30 * time.Second
)

// ErrOutputNotSent is returned by FlushOutput if output was not sent.
var ErrOutputNotSent = errors.New("output was not sent")

// sender sends the output of the work in order.
type sender struct {
	box *outbox
	// ctx is the context of sendOutput. FlushOutput ends it.
	ctx  context.Context //nolint:containedctx // of a goroutine
	stop context.CancelFunc
	// turn is held by the goroutine that sends, and guards the fields below.
	turn     chan struct{}
	batch    []chunk // removed from the box; the control plane may have received the first one
	sequence int
	followed bool
	answered bool
	sentAt   time.Time // of the last batch
	off      bool      // output is no longer sent
}

func newSender(ctx context.Context, now func() time.Time) *sender {
	s := &sender{box: newOutbox(now), turn: make(chan struct{}, 1), sequence: 1}
	s.ctx, s.stop = context.WithCancel(ctx)
	return s
}

// Stdout returns a writer to the standard output of the task, which clients read while the work
// runs. Without Options.SendsOutput, and for a worker that has only CALLBACK_URL, it discards
// everything. A write accepts all bytes without a call and without an error. While the control
// plane does not respond, at most 768 KiB are held. More output replaces the oldest, and a line
// in the output reports the number of missing bytes. It is safe for concurrent use.
func (t *Task) Stdout() io.Writer { return t.stream(stdout) }

// Stderr is like Stdout, for the standard error.
func (t *Task) Stderr() io.Writer { return t.stream(stderr) }

func (t *Task) stream(name string) io.Writer {
	if t.sender == nil {
		return io.Discard
	}
	return stream{t.sender.box, name}
}

// flushed is the result of FlushOutput.
type flushed struct {
	done bool
	lost int64 // bytes that were neither sent nor replaced by a line
	err  error
}

// FlushOutput sends the output that was written so far, and accepts no more. It retries for at
// most 30 seconds, or after a cancel request for an eighth of the grace period. Complete calls
// it; another call returns the same result. The error wraps ErrOutputNotSent. In that case
// UploadLog can store the output instead. Without Options.SendsOutput it returns
// ErrOutputNotSent.
func (t *Task) FlushOutput(ctx context.Context) error {
	if t.sender == nil {
		return ErrOutputNotSent
	}
	t.mu.Lock()
	before := t.flush
	t.mu.Unlock()
	if before.done {
		return before.err
	}
	s := t.sender
	s.stop() // an unanswered call is repeated
	err := t.sendRest(ctx)
	s.turn <- struct{}{}
	f := flushed{done: true, lost: s.box.close(s.batch)}
	if s.batch = nil; s.off || f.lost > 0 {
		f.err = fmt.Errorf("%w: %d bytes: %w", ErrOutputNotSent, f.lost, cmp.Or(err, errors.New("not accepted")))
	}
	<-s.turn
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush = f
	return f.err
}

// sendRest sends the remaining output, with retries.
func (t *Task) sendRest(ctx context.Context) error {
	limit := outputTimeout
	if t.ctx.Err() != nil {
		limit = min(limit, t.timing.grace/8)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	timer, stop := t.options.Clock.NewTimer(limit)
	defer stop()
	go func() {
		select {
		case <-timer:
			cancel()
		case <-ctx.Done():
		}
	}()
	for n := 0; ; n++ {
		err := t.sendAll(ctx, false)
		if err == nil || !isRetryable(err) {
			return err
		}
		if clock.Sleep(ctx, t.options.Clock, backoff(n, firstDelay, maxDelay, t.options.Jitter())) != nil {
			return err
		}
	}
}

func isRetryable(err error) bool {
	_, ok := errors.AsType[*retryableError](err)
	return ok
}

// sendOutput sends output at each interval until Close or FlushOutput.
func (t *Task) sendOutput() {
	s := t.sender
	ctx := s.ctx
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.box.grown:
		}
		if s.box.isEmpty() {
			continue
		}
		if t.awaitOutputTime(ctx, failures) != nil {
			return
		}
		err := t.sendAll(ctx, true)
		switch {
		case ctx.Err() != nil || err != nil && !isRetryable(err):
			return
		case err != nil:
			failures++
			t.options.Log.WarnContext(ctx, "output was not sent, retrying", "why", err.Error())
		default:
			failures = 0
		}
		if !s.box.isEmpty() || err != nil {
			select {
			case s.box.grown <- struct{}{}:
			default:
			}
		}
	}
}

// awaitOutputTime waits until the output is due.
func (t *Task) awaitOutputTime(ctx context.Context, failures int) error {
	s := t.sender
	s.turn <- struct{}{}
	delay := followedInterval
	switch since := t.options.Clock.Now().Sub(s.sentAt); {
	case s.followed:
		delay = max(followedInterval-since, gatherTime)
	case s.answered:
		delay = max(idleInterval-since, followedInterval)
	}
	<-s.turn
	if failures > 0 {
		delay = max(delay, backoff(failures, firstDelay, maxDelay, t.options.Jitter()))
	}
	timer, stop := t.options.Clock.NewTimer(delay)
	defer stop()
	for failures > 0 || !s.box.isEarly() {
		select {
		case <-timer:
			return nil
		case <-s.box.grown: // there may be enough output now
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// sendAll sends the output in the box. If frugal, it limits the number of chunks while no
// client follows and much was sent.
func (t *Task) sendAll(ctx context.Context, frugal bool) error {
	s := t.sender
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.sentAt = t.options.Clock.Now()
	for sent := 0; !s.off; sent++ {
		if len(s.batch) == 0 {
			if frugal && sent >= idleChunks && !s.followed && s.box.sentMuch() {
				return nil
			}
			if s.batch = s.box.take(idleChunks); len(s.batch) == 0 {
				return nil
			}
		}
		if err := t.sendChunk(ctx, s.batch[0]); err != nil {
			return err
		}
		s.batch = s.batch[1:]
		s.sequence++
	}
	return ErrOutputNotSent
}

// sendChunk makes one call. An error that is not retryable means that the control plane refuses
// output, and the task stops sending it.
func (t *Task) sendChunk(ctx context.Context, c chunk) error {
	s := t.sender
	data := base64.StdEncoding.EncodeToString(c.data)
	body := contract.TaskLog{Attempt: t.assignment.Envelope.Attempt, Stream: c.stream, Sequence: &s.sequence, Data: &data}
	if !c.since.IsZero() {
		// Rounded up, because 0 is an unknown age.
		body.AgeMs = new(1 + max(t.options.Clock.Now().Sub(c.since), 0).Milliseconds())
	}
	a, err := t.call(ctx, "logs", body)
	if err != nil {
		return err
	}
	if a.ok() {
		var said contract.LogAnswer
		if json.Unmarshal(a.body, &said) != nil {
			return &retryableError{err: errors.New("malformed answer")}
		}
		s.answered, s.followed = true, said.Followed
		if said.ShouldCancel {
			t.mu.Lock()
			t.cancelRequested = true
			t.mu.Unlock()
			t.cancel(cancelCause(said.CancelReason))
		}
		return nil
	}
	if err := a.err(); isRetryable(err) {
		return err
	}
	s.off = true
	if p := a.problem(); a.status == http.StatusConflict && (p.Error == contract.ErrorSequenceGap || p.Error == contract.ErrorSequenceConflict) {
		return errors.New("the control plane has other output of this attempt")
	}
	if cause := causeOf(a); cause != nil {
		t.cancel(cause)
		return cause
	}
	t.options.Log.InfoContext(ctx, "the control plane does not take output", "status", a.status)
	return a.err()
}
