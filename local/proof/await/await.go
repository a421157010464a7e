// Package await lets a test wait for what happens, on the wall clock. Tests with a virtual clock
// do not need it.
package await

import (
	"testing"
	"time"
)

// Limit is how long Until waits. A loaded host needs much more time than an idle one, so that the
// limit only ends tests that would never end.
const Limit = 2 * time.Minute

// The time between two calls of look doubles from firstPause to longestPause.
const firstPause, longestPause = 10 * time.Millisecond, 300 * time.Millisecond

// Until calls look until it returns true. It fails the test at once if what did not happen within
// Limit, or if the test ends.
func Until(t testing.TB, what string, look func() bool) {
	t.Helper()
	Within(t, Limit, what, look)
}

// Within is Until with a limit of at least a minute.
func Within(t testing.TB, limit time.Duration, what string, look func() bool) {
	t.Helper()
	limit = max(limit, time.Minute)
	over := time.NewTimer(limit)
	defer over.Stop()
	for pause := firstPause; !look(); pause = min(2*pause, longestPause) {
		select {
		case <-time.After(pause):
		case <-over.C:
			t.Fatalf("got no %s within %s", what, limit)
		case <-t.Context().Done():
			t.Fatalf("got no %s before the end of the test", what)
		}
	}
}
