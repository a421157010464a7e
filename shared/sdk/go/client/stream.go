package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

const (
	// silence is how long a stream may be without a byte: the server sends some each 15 s.
	silence = 45 * time.Second
	// mostStreamDelay limits the delay before a stream connects again.
	mostStreamDelay = 30 * time.Second
	mostRetryAfter  = 5 * time.Minute
	// unlimited is the limit of a stream that may be silent.
	unlimited = time.Duration(math.MaxInt64)
)

var errSilent = errors.New("no answer in time")

// watched is a body that fails if no byte comes for too long.
type watched struct {
	io.ReadCloser
	wrap   func(error) error
	arm    func() (stop func())
	stop   func()
	cancel context.CancelCauseFunc
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.stop()
	if err == nil {
		w.stop = w.arm()
	} else if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = w.wrap(err)
	}
	return n, err
}

func (w *watched) Close() error {
	w.stop()
	w.cancel(nil)
	return w.ReadCloser.Close()
}

// stream opens an answer whose body the caller reads and closes. limit is the longest time
// without a byte.
func (t *transport) stream(ctx context.Context, what call, limit time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	arm := func() func() {
		if limit == unlimited {
			return func() {}
		}
		return clock.AfterFunc(t.clock, limit, func() { cancel(errSilent) })
	}
	stop := arm()
	response, err := t.open(ctx, what)
	if err != nil {
		stop()
		cancel(nil)
		return nil, err
	}
	request := response.Request
	response.Body = &watched{
		ReadCloser: response.Body, arm: arm, stop: stop, cancel: cancel,
		wrap: func(err error) error { return connectionError(ctx, request, err) },
	}
	return response, nil
}

// isBreak reports whether a new connection may continue a stream that ended with this error.
func isBreak(err error) bool {
	if refused, ok := errors.AsType[*Error](err); ok {
		return slices.Contains([]int{408, 425, 429, 500, 502, 503, 504}, refused.Status)
	}
	_, ok := errors.AsType[*ConnectionError](err)
	return ok
}

// pauses computes the delays before a stream connects again.
type pauses struct {
	failures int
	retry    time.Duration
}

func (p *pauses) sleep(ctx context.Context, c clock.Clock, err error) error {
	if refused, ok := errors.AsType[*Error](err); ok && refused.RetryAfter > 0 {
		p.retry = refused.RetryAfter
	}
	bound := min(mostStreamDelay, 2*firstDelay<<min(p.failures, 10))
	delay := max(min(p.retry, mostRetryAfter), rand.N(bound)) //nolint:gosec // not a secret
	p.failures++
	p.retry = 0
	if err := clock.Sleep(ctx, c, delay); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// resumption is a stream that continues behind a cursor.
type resumption struct {
	cursor string
	call   func(cursor string) call
	// last reports whether the stream ends for good with a message.
	last func(message) bool
	// moved is called before a message is yielded, and for ids without data.
	moved func(cursor string)
}

// follow yields messages and connects again until yield returns false, the stream ends for
// good, or ctx ends.
func (t *transport) follow(ctx context.Context, r resumption, yield func(message) bool) error {
	var waits pauses
	for {
		ended, err := t.followOnce(ctx, &r, &waits, yield)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if ended || err != nil && !isBreak(err) {
			return err
		}
		if err := waits.sleep(ctx, t.clock, err); err != nil {
			return err
		}
	}
}

func (t *transport) followOnce(ctx context.Context, r *resumption, waits *pauses, yield func(message) bool) (ended bool, err error) {
	what, err := t.prepare(r.call(r.cursor), nil)
	if err != nil {
		return true, err
	}
	response, err := t.stream(ctx, what, silence)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNoContent {
		return true, nil
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind == "text/html" {
		return true, errors.New("the answer is a page, not a stream: check the URL")
	}
	d := &decoder{lastID: r.cursor, id: r.cursor}
	return d.each(response.Body, func(m message) bool {
		waits.failures = 0
		if m.id != "" {
			r.cursor = m.id
			r.moved(m.id)
		}
		return yield(m) && !r.last(m)
	}, func() {
		if d.retry != nil {
			waits.retry = *d.retry
		}
		if d.lastID != "" && d.lastID != r.cursor {
			r.cursor = d.lastID
			r.moved(d.lastID)
		}
	})
}

// each yields the messages of a body, and calls between after each chunk. It reports whether
// yield ended it.
func (d *decoder) each(body io.Reader, yield func(message) bool, between func()) (ended bool, err error) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := body.Read(chunk)
		messages, invalid := d.decode(chunk[:n])
		for _, m := range messages {
			if !yield(m) {
				return true, nil
			}
		}
		between()
		if invalid != nil {
			return true, invalid
		}
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// decodeMessage decodes a message, which is a JSON object. The error does not quote it.
func decodeMessage[T any](text []byte) (*T, error) {
	value := new(T)
	if err := json.Unmarshal(text, value); err != nil {
		return nil, errors.New("malformed message of the stream")
	}
	return value, nil
}
