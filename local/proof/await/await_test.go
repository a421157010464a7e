package await_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/local/proof/await"
)

// TestUntilWaitsAMinute checks that a short limit becomes a minute.
func TestUntilWaitsAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		await.Within(t, time.Second, "end of 50 s", func() bool { return time.Since(begun) > 50*time.Second })
		if took := time.Since(begun); took > 51*time.Second {
			t.Errorf("got an end after %s, want 50 s", took)
		}
	})
}
