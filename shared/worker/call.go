package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// Limits of calls and of the pauses between them.
const (
	maxCall      = 30 * time.Second
	minCall      = 500 * time.Millisecond
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	longestAfter = 5 * time.Minute // of a Retry-After
	maxAnswer    = 64 << 10
)

// answer is what came back of a call.
type answer struct {
	status int
	body   []byte
	// after is how long the server asks to wait; 0 where it does not.
	after time.Duration
}

func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// problem is the body as a problem; its zero value where it is none.
func (a answer) problem() contract.Problem {
	var p contract.Problem
	_ = json.Unmarshal(a.body, &p)
	return p
}

// err says that a call was not accepted: an *again where the same may be
// accepted later.
func (a answer) err() error {
	why := fmt.Errorf("the answer was %d %s", a.status, http.StatusText(a.status))
	switch a.status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
	default:
		if a.status < 500 {
			return why
		}
	}
	return &again{why, a.after}
}

// again is a failure after which the same is tried again.
type again struct {
	err   error
	after time.Duration
}

func (a *again) Error() string { return a.err.Error() }
func (a *again) Unwrap() error { return a.err }

// send makes one call and reads its answer. Its errors do not name the address,
// which may be a secret.
func (t *Task) send(req *http.Request) (answer, error) {
	resp, err := t.http.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return answer{}, &again{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	a := answer{resp.StatusCode, body, retryAfter(resp.Header, t.options.Clock.Now())}
	if err != nil && a.ok() {
		return answer{}, &again{err: fmt.Errorf("the answer broke off: %w", err)}
	}
	return a, nil
}

// post sends JSON. A token that is not "" goes with it as Bearer.
func (t *Task) post(ctx context.Context, address, token string, body any, limit time.Duration) (answer, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return answer{}, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return answer{}, errors.New("the address is none")
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return t.send(req)
}

// retryAfter reads how long the server asks to wait: seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	var d time.Duration
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), longestAfter)
}

// pause is the n-th wait (from 0) between tries: full jitter under a bound that
// doubles.
func pause(n int, first, longest time.Duration, jitter float64) time.Duration {
	bound := float64(first) * math.Pow(2, float64(min(n, 30)))
	return time.Duration(jitter * min(bound, float64(longest)))
}

// insist tries until it works, cannot work (an error that is no *again), the
// context ends, or the next try would begin after the time until.
func (t *Task) insist(ctx context.Context, until time.Time, what string, try func(context.Context) error) error {
	for n := 0; ; n++ {
		err := try(ctx)
		failed, ok := errors.AsType[*again](err)
		if !ok {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		delay := max(pause(n, firstPause, longestPause, t.options.Jitter()), failed.after)
		if t.options.Clock.Now().Add(delay).After(until) {
			return fmt.Errorf("given up after %d tries: %w", n+1, failed.err)
		}
		t.options.Log.WarnContext(ctx, what+" failed, trying again", "try", n+1, "why", failed.Error(), "delay", delay)
		if !t.sleep(ctx, delay) {
			return context.Cause(ctx)
		}
	}
}

// sleep waits; it is false where the context ended first.
func (t *Task) sleep(ctx context.Context, d time.Duration) bool {
	timer, stop := t.options.Clock.NewTimer(d)
	defer stop()
	select {
	case <-timer:
		return true
	case <-ctx.Done():
		return false
	}
}
