package runs_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestFallbackAwaitsAnUnansweredCreation creates a machine whose creation is not answered
// and that no list shows, and then refuses a creation. The run falls back once the machine
// was seen and destroyed, or has not appeared by the start limit.
func TestFallbackAwaitsAnUnansweredCreation(t *testing.T) {
	t.Parallel()
	for name, appears := range map[string]bool{"it appears": true, "it never appears": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fallsBack(t)
			var lost *machine
			h.runner.during = func(m *machine) error {
				lost, m.hidden = m, true
				h.refuse(fault.Capacity)
				return fault.New(fault.Unavailable, "no answer")
			}
			task := h.post()
			h.advance(time.Minute)
			r := h.wantState(task, run.Terminating)
			if !r.FallsBack() || len(h.runner.launched) != 2 {
				t.Fatalf("got %d launches and detour %+v, want a run that leaves its pool after two", len(h.runner.launched), r.Detour)
			}
			if appears {
				lost.hidden = false
				h.advance(2 * time.Minute)
				if lost.Phase != port.MachineGone {
					t.Errorf("got the lost machine %s, want it gone", lost.Phase)
				}
			} else {
				h.advance(r.Attempt.StartBy.Sub(h.clock.now) + 2*time.Minute)
			}
			if r = h.wantState(task, run.Running); r.Slot.Pool != "spare" || r.Attempt.Number != 2 {
				t.Errorf("got attempt %d in pool %s, want attempt 2 in spare", r.Attempt.Number, r.Slot.Pool)
			}
		})
	}
}

// TestMachineThatIsNotSeenGoneDoesNotFallBack creates a machine that its platform neither
// starts nor removes.
func TestMachineThatIsNotSeenGoneDoesNotFallBack(t *testing.T) {
	t.Parallel()
	h := fallsBack(t)
	h.runner.during = func(m *machine) error {
		m.StartFault, h.runner.indestructible = fault.New(fault.Capacity, "0/3 nodes are available"), true
		return nil
	}
	task := h.post()
	h.advance(9 * time.Minute)
	if r := h.wantState(task, run.Terminating); !r.FallsBack() {
		t.Errorf("got detour %+v, want a run that leaves its pool", r.Detour)
	}
	h.advance(3 * time.Minute)
	r := h.wantState(task, run.Running)
	if r.Slot.Pool != "default" || r.Detour != nil || r.Attempt.Number != 2 || r.Spent.Starts != 1 {
		t.Errorf("got attempt %d in pool %s, %+v and %+v spent, want a further start in the run's own pool", r.Attempt.Number, r.Slot.Pool, r.Detour, r.Spent)
	}
}

// TestAnotherRunnerDoesNotDelayTheEnd ends attempts without a machine while one of the
// runners does not answer.
func TestAnotherRunnerDoesNotDelayTheEnd(t *testing.T) {
	t.Parallel()
	for on, want := range map[string]run.State{platform.RunnerFly: run.Failed, platform.RunnerProcess: run.Terminating} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) {
				c.Runners = platform.RunnerOffer{Runners: []string{platform.RunnerFly, platform.RunnerProcess}}
			})
			h.runner.silent = platform.RunnerProcess
			_, _, err := h.service.Pools.Put(t.Context(), client, "default", pools.Definition{Limit: 5, Placement: platform.Placement{Runner: on}}, change.Precondition{})
			h.ok(err)
			h.refuse(fault.LaunchRefused)
			task := h.post()
			h.advance(time.Minute)
			h.wantState(task, want)
		})
	}
}
