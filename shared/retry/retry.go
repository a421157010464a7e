// Package retry computes the delays of retries. It has no clock and no random
// numbers of its own.
package retry

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Backoff is an exponential backoff.
type Backoff struct {
	// First is the delay before the first retry, Most the largest delay.
	First, Most time.Duration
	// Multiplier is the factor from one delay to the next; below 1 it counts as 1.
	Multiplier float64
}

// Delay returns the delay before retry n, counted from 0.
func (b Backoff) Delay(n int) time.Duration {
	delay := float64(b.First) * math.Pow(max(b.Multiplier, 1), float64(max(n, 0)))
	return time.Duration(min(delay, float64(b.Most)))
}

// After returns the delay that a Retry-After header asks for (RFC 9110, 10.2.3):
// seconds, or a date that is compared with now. It is at most most, however many digits
// the header has, and 0 if the header is missing or malformed.
func After(header string, now time.Time, most time.Duration) time.Duration {
	header = strings.TrimSpace(header)
	seconds, err := strconv.ParseUint(header, 10, 64)
	switch {
	case err == nil && seconds < uint64(max(most, 0)/time.Second): //nolint:gosec // it is not negative
		return time.Duration(seconds) * time.Second //nolint:gosec // it is below most
	case err == nil, errors.Is(err, strconv.ErrRange):
		return most
	}
	for _, layout := range []string{time.RFC1123, time.RFC850, time.ANSIC} {
		if at, err := time.Parse(layout, header); err == nil {
			return min(max(at.Sub(now), 0), most)
		}
	}
	return 0
}
