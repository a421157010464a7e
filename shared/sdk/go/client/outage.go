package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

const (
	firstOutageDelay = 200 * time.Millisecond
	mostOutageDelay  = 5 * time.Second
)

// Outage is a policy of retries for Client.Retry. The zero value retries nothing.
type Outage struct {
	// Limit is the longest time from the first failure to the last retry.
	Limit time.Duration
	// OnRetry is called with the failure before the delay of each retry; nil means no call.
	OnRetry func(error)
	// Final reports failures that must not be retried; nil means none.
	Final func(error) bool
}

// Retry repeats do while it returns a temporary failure: a *ConnectionError, or an *Error with
// 429, 502, 503 or 504 without the header "X-Should-Retry: false". The delay grows to 5 s with
// jitter, and is no less than the server asks for. do must be safe to repeat.
//
// Retry returns the last failure of do when outage.Limit would be exceeded, and the error of ctx
// when ctx ends during a delay. Set Config.Retries to a negative number if do calls methods of
// the client, or both policies apply.
func (c *Client) Retry(ctx context.Context, outage Outage, do func() error) error {
	var since time.Time
	for bound := firstOutageDelay; ; bound = min(bound*3/2, mostOutageDelay) {
		err := do()
		least, temporary := temporary(err)
		if !temporary || outage.Limit <= 0 || outage.Final != nil && outage.Final(err) {
			return err
		}
		now := c.transport.clock.Now()
		if since.IsZero() {
			since = now
		}
		delay := max(least, bound/2+rand.N(bound)) //nolint:gosec // not a secret
		if now.Add(delay).Sub(since) > outage.Limit {
			return err
		}
		if outage.OnRetry != nil {
			outage.OnRetry(err)
		}
		if err := clock.Sleep(ctx, c.transport.clock, delay); err != nil {
			return err
		}
	}
}

// temporary reports whether a failure may pass, and the shortest delay that the server asks for.
func temporary(err error) (least time.Duration, ok bool) {
	if refused, ok := errors.AsType[*Error](err); ok {
		passes := slices.Contains([]int{
			http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		}, refused.Status)
		return refused.RetryAfter, passes && refused.Header.Get("X-Should-Retry") != "false"
	}
	lost, ok := errors.AsType[*ConnectionError](err)
	return 0, ok && !errors.Is(lost.Err, errTooLong)
}
