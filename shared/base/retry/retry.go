// Package retry computes delays between retries. It is pure: it uses no clock and no random
// numbers.
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
	// First is the delay before the first retry. Most is the maximum delay.
	First, Most time.Duration
	// Multiplier is the factor from one delay to the next. A value below 1 means 1.
	Multiplier float64
}

// Delay returns the delay before retry n, counted from 0.
func (b Backoff) Delay(n int) time.Duration {
	delay := float64(b.First) * math.Pow(max(b.Multiplier, 1), float64(max(n, 0)))
	return time.Duration(min(delay, float64(b.Most)))
}

// After returns the delay of a Retry-After header (RFC 9110, 10.2.3): a number of seconds, or
// the time from now until a date. It returns at most most, however many digits the number has,
// and 0 if the header is empty or malformed or its date is past.
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
