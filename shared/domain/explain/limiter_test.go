package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestPacedStartNamesItsCause explains a queued run whose pool has used up the documented limit
// of its app, and a queued run whose starts the platform has throttled.
func TestPacedStartNamesItsCause(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	r := run.Run{Tenant: "t", ID: "r", State: run.Pending}
	r.Slot = platform.Slot{Pool: "p", State: platform.SlotQueued, Since: now, Limit: 10}
	apps := []fleet.StartPace{{App: "a", Interval: time.Minute, Burst: 1}}
	app, limited, _, ok := fleet.StartLimiter{Pool: "p"}.Take(apps, now)
	if !ok {
		t.Fatalf("got no start at %q, want the first", app)
	}
	throttled, _ := fleet.StartLimiter{Pool: "p"}.Throttled(apps, "a", now, now)
	for want, limiter := range map[string]fleet.StartLimiter{
		"starts wait for the limit of the platform, which permits the next one of pool p at 2026-03-01T08:01:00Z": limited,
		"the platform has throttled starts and permits the next one of pool p at 2026-03-01T08:02:00Z":            throttled,
	} {
		got := explain.Run(r, explain.Facts{Now: now, Pool: explain.Queue{Name: "p", Limit: 10}, Limiter: limiter})
		if got.Reason != explain.StartsPaced || !strings.Contains(got.Message, want) {
			t.Errorf("got %s: %s, want %s: %s", got.Reason, got.Message, explain.StartsPaced, want)
		}
	}
}
