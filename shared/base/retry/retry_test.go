package retry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/retry"
)

func TestBackoffGrowsToItsLimit(t *testing.T) {
	t.Parallel()
	b := retry.Backoff{First: time.Second, Most: 10 * time.Second, Multiplier: 2}
	for n, want := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: 2 * time.Second, 3: 8 * time.Second, 4: 10 * time.Second, 1 << 30: 10 * time.Second,
	} {
		if got := b.Delay(n); got != want {
			t.Errorf("retry %d: got %s, want %s", n, got, want)
		}
	}
	if got := (retry.Backoff{First: time.Second, Most: time.Minute}).Delay(5); got != time.Second {
		t.Errorf("without a multiplier: got %s, want 1s", got)
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "3600": time.Minute, "99999999999": time.Minute, "soon": 0,
		"59": 59 * time.Second, "60": time.Minute, "4294967296": time.Minute, "18446744073709551616": time.Minute, " 7 ": 7 * time.Second,
		"1" + strings.Repeat("0", 100): time.Minute, "1e9": 0, "+7": 0, "7.5": 0, "0": 0,
		"Fri, 31 Dec 9999 23:59:59 GMT":  time.Minute,
		"Fri, 02 Jan 2026 03:04:15 GMT":  10 * time.Second,
		"Friday, 02-Jan-26 03:04:15 GMT": 10 * time.Second,
		"Fri Jan  2 03:04:15 2026":       10 * time.Second,
		"Fri, 02 Jan 2026 03:00:00 GMT":  0,
		"Fri, 02 Jan 2026 05:00:00 GMT":  time.Minute,
	} {
		if got := retry.After(header, now, time.Minute); got != want {
			t.Errorf("%q: got %s, want %s", header, got, want)
		}
	}
}
