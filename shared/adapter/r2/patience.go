package r2

import (
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// An Uploader retries each request for about two minutes, because the output took longer to
// create. A worker waits as long for its source. Outputs does not retry, because the state
// machine does.
const (
	uploadAttempts   = 18
	uploadFirstPause = 100 * time.Millisecond
	uploadLastPause  = 10 * time.Second
)

// patient is the retry policy of an Uploader. It is the SDK's with more than three tries, and
// without retries for a body that cannot be read.
func patient() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.RateLimiter = uploadAttempts, ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			pause := min(uploadFirstPause<<min(attempt, 16), uploadLastPause)
			return pause/2 + rand.N(pause/2), nil //nolint:gosec // jitter needs no secrecy
		})
		o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			if _, ours := errors.AsType[*unreadable](err); ours {
				return aws.FalseTernary
			}
			return aws.UnknownTernary
		})}, o.Retryables...)
	})
}

// unreadable is a read error of the body.
type unreadable struct{ cause error }

func (e *unreadable) Error() string { return "the body cannot be read: " + e.cause.Error() }
func (e *unreadable) Unwrap() error { return e.cause }

// readable wraps the read errors of a body in unreadable.
type readable struct{ io.ReaderAt }

func (r readable) ReadAt(p []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &unreadable{err}
	}
	return n, err
}
