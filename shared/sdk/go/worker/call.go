package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const (
	maxCall       = 30 * time.Second
	minCall       = 500 * time.Millisecond
	firstDelay    = 500 * time.Millisecond
	maxDelay      = 30 * time.Second
	maxRetryAfter = 5 * time.Minute
	maxAnswer     = 64 << 10
)

// answer is the response to a call.
type answer struct {
	status     int
	body       []byte
	retryAfter time.Duration // 0 if the header is absent
}

func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// problem decodes the body as a problem document. It returns the zero value for any other
// body.
func (a answer) problem() contract.Problem {
	var p contract.Problem
	_ = json.Unmarshal(a.body, &p)
	return p
}

// err returns the error of an answer that is not ok. It is a *retryableError if a retry may
// succeed.
func (a answer) err() error {
	err := fmt.Errorf("unexpected status %d %s", a.status, http.StatusText(a.status))
	switch a.status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
	default:
		if a.status < 500 {
			return err
		}
	}
	return &retryableError{err, a.retryAfter}
}

// retryableError is an error after which the same call may succeed. The retry must wait at
// least after.
type retryableError struct {
	err   error
	after time.Duration
}

func (e *retryableError) Error() string { return e.err.Error() }
func (e *retryableError) Unwrap() error { return e.err }

// send sends a request and reads the response. Its errors do not contain the URL, which may be
// a secret.
func (t *Task) send(req *http.Request) (answer, error) {
	resp, err := t.http.Do(req)
	if err != nil {
		return answer{}, &retryableError{err: withoutURL(err)}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	a := answer{resp.StatusCode, body, retry.After(resp.Header.Get("Retry-After"), t.options.Clock.Now(), maxRetryAfter)}
	if err != nil && a.ok() {
		return answer{}, &retryableError{err: fmt.Errorf("truncated answer: %w", err)}
	}
	return a, nil
}

// withoutURL returns the cause of an error of net/http, which contains the URL.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// post sends body as JSON, with token as Bearer unless it is empty.
func (t *Task) post(ctx context.Context, address, token string, body any, timeout time.Duration) (answer, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return answer{}, fmt.Errorf("cannot encode the body: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return answer{}, errMalformedURL
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return t.send(req)
}

// errMalformedURL replaces the error of net/http, which contains the URL.
var errMalformedURL = errors.New("malformed URL")

// backoff returns the delay before retry n, from 0: full jitter under a bound
// that doubles from first to most.
func backoff(n int, first, most time.Duration, jitter float64) time.Duration {
	bound := retry.Backoff{First: first, Most: most, Multiplier: 2}.Delay(n)
	return time.Duration(jitter * float64(bound))
}

// retry calls try until it succeeds, returns an error that is not retryable, ctx
// ends, or until. The last call is made then.
func (t *Task) retry(ctx context.Context, until time.Time, what string, try func(context.Context) error) error {
	for n := 0; ; n++ {
		err := try(ctx)
		failed, ok := errors.AsType[*retryableError](err)
		if !ok {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		left := until.Sub(t.options.Clock.Now())
		if left <= 0 {
			return fmt.Errorf("gave up after %d calls: %w", n+1, failed.err)
		}
		delay := min(max(backoff(n, firstDelay, maxDelay, t.options.Jitter()), failed.after), left)
		t.options.Log.WarnContext(ctx, what+" failed, retrying", "try", n+1, "why", failed.Error(), "delay", delay)
		if clock.Sleep(ctx, t.options.Clock, delay) != nil {
			return context.Cause(ctx)
		}
	}
}
