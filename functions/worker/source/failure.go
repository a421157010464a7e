package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/shared/base/retry"
)

// Kind is the kind of a failure after all attempts.
type Kind string

// The kinds of failures.
const (
	// Absent means that the source does not have the object (404, 410).
	Absent Kind = "absent"
	// Refused means another response that a retry does not change (4xx, a redirect, a malformed
	// CID).
	Refused Kind = "refused"
	// Unavailable means 429, 5xx, no connection, a late response or a truncated response.
	Unavailable Kind = "unavailable"
	// Garbled means a response that cannot be parsed. It is retried, because it may have been
	// truncated.
	Garbled Kind = "garbled"
	// Corrupt means bytes that do not match their CID. They are requested again for the same
	// reason.
	Corrupt Kind = "corrupt"
	// TooLarge means more bytes than the limit.
	TooLarge Kind = "too large"
)

// Failure is an error of reading from the source. Its text is the same on every run
// and contains no host or URL.
type Failure struct {
	Kind   Kind
	Status int // of HTTP; 0 without an answer
	reason string
	after  time.Duration // Retry-After
	cause  error
}

// Error returns the status, such as "404 Not Found", or a reason.
func (f *Failure) Error() string {
	if f.reason == "" && f.Status != 0 {
		return fmt.Sprintf("%d %s", f.Status, http.StatusText(f.Status))
	}
	return f.reason
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.cause }

// KindOf returns the kind of a Failure, or "" for any other error.
func KindOf(err error) Kind {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Kind
	}
	return ""
}

func (f *Failure) retryable() bool {
	return f.Kind == Unavailable || f.Kind == Garbled || f.Kind == Corrupt
}

// attempts limits the attempts of a kind. Three responses in a row are rarely truncated.
func (f *Failure) attempts(most int) int {
	if f.Kind == Corrupt || f.Kind == Garbled {
		return min(most, 3)
	}
	return most
}

func fromStatus(resp *http.Response, now time.Time) *Failure {
	f := &Failure{Kind: Refused, Status: resp.StatusCode}
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		f.Kind = Absent
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code == http.StatusTooEarly || code >= 500:
		f.Kind = Unavailable
		f.after = retry.After(resp.Header.Get("Retry-After"), now, maxRetryAfter)
	}
	return f
}

func fromTransport(err error) *Failure {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without the address
	}
	reason := "the source did not answer"
	if errors.Is(err, errTooSlow) || errors.Is(err, context.DeadlineExceeded) {
		reason = "the source did not answer in time"
	}
	return &Failure{Kind: Unavailable, reason: reason, cause: err}
}
