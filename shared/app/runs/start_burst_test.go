package runs_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestBurstIsNeverRefused accepts many runs at once on apps whose platform documents how
// often it permits a creation. The first calls use the bursts of all apps, the others wait
// in the queue, in the order of their creation: the platform refuses none, and no app is
// left idle.
func TestBurstIsNeverRefused(t *testing.T) {
	t.Parallel()
	for _, apps := range []int{1, 4} {
		t.Run(fmt.Sprint(apps, " apps"), func(t *testing.T) {
			t.Parallel()
			const burst, waiting = 3, 100
			h := setup(t, func(c *runs.Config) {
				c.MaxMachines, c.Policy.TimeLimit, c.Policy.QueueTimeout = waiting, 10*time.Hour, 10*time.Hour
				c.Policy.HeartbeatInterval, c.Policy.HeartbeatTimeout = time.Hour, 3*time.Hour
			})
			h.documentLimits(apps, burst)
			var tasks []string
			for range waiting {
				h.clock.to(h.clock.now.Add(time.Millisecond))
				tasks = append(tasks, h.accept())
			}
			start := h.clock.now
			h.step()
			if got, want := len(h.runner.launched), burst*apps; got < want {
				t.Errorf("got %d machines at once, want the bursts of all apps: %d", got, want)
			}
			for until := start.Add(10 * time.Minute); h.clock.now.Before(until) && len(h.runner.launched) < waiting; {
				h.advance(time.Second)
			}
			took := h.clock.now.Sub(start)
			if most := time.Duration(waiting-burst*apps)*1050*time.Millisecond/time.Duration(apps) + 5*time.Second; took > most {
				t.Errorf("got the last machine after %s, want it within %s", took, most)
			}
			if h.runner.refused > 0 {
				t.Errorf("got %d refused creations, want none", h.runner.refused)
			}
			var order []string
			for _, m := range h.runner.launched {
				order = append(order, m.spec.Env["TASK_ID"])
			}
			if !slices.Equal(order[burst*apps:], tasks[burst*apps:]) {
				t.Errorf("got starts in the order %v, want the order of the creation %v", order, tasks)
			}
			for _, task := range tasks {
				h.wantState(task, run.Running)
			}
		})
	}
}

// TestBucketSurvivesARestart uses up the tokens of an app and opens the store again: the
// next start waits for a token, and the platform refuses none.
func TestBucketSurvivesARestart(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.documentLimits(1, 3)
	for range 3 {
		h.accept()
	}
	h.step()
	reopened, err := sqlite.NewStore(h.Context(), h.db, h.clock)
	h.ok(err)
	h.store.Store = reopened
	h.service = h.system(wiring{})
	if got := h.health(); got.NextStart.IsZero() {
		t.Error("got a start that is permitted now, want one later")
	}
	before := h.clock.now
	last := h.post()
	h.advance(2 * time.Second)
	h.wantState(last, run.Running)
	if waited := h.record(last).Attempt.StartAt.Sub(before); waited < time.Second || h.runner.refused > 0 {
		t.Errorf("got a start after %s and %d refused creations, want one after 1s at least and none", waited, h.runner.refused)
	}
}

// TestPoolsThatShareAnAppShareItsLimit starts runs of two pools with the same app: together
// they use its limit, and stay within it.
func TestPoolsThatShareAnAppShareItsLimit(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.documentLimits(1, 3)
	h.put("default", 0)
	h.put("spare", 0)
	for range 10 {
		h.accept()
		h.ok(h.once("spare"))
	}
	start := h.clock.now
	h.step()
	for h.clock.now.Sub(start) < time.Minute && len(h.runner.launched) < 20 {
		h.advance(time.Second)
		h.sweep()
	}
	if took, most := h.clock.now.Sub(start), 17*1050*time.Millisecond+8*time.Second; len(h.runner.launched) != 20 || took > most {
		t.Errorf("got %d machines after %s, want 20 within %s", len(h.runner.launched), took, most)
	}
	if h.runner.refused > 0 {
		t.Errorf("got %d refused creations, want none", h.runner.refused)
	}
}

// TestHealthHasTheRateOfAllApps starts one run on two apps: the other one permits as many
// starts, and one now.
func TestHealthHasTheRateOfAllApps(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.documentLimits(2, 1)
	h.post()
	got := h.health()
	if want := 2 / 1.05; math.Abs(got.StartRate-want) > 1e-9 || !got.NextStart.IsZero() {
		t.Errorf("got %v starts a second, the next one at %s, want %v and now", got.StartRate, got.NextStart, want)
	}
	h.post()
	if got, want := h.health().NextStart, h.clock.now.Add(1050*time.Millisecond); !got.Equal(want) {
		t.Errorf("got the next start at %s, want %s", got, want)
	}
}
