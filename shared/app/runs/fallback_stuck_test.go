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

// TestMachineThatDoesNotStartFallsBack lets the platform create a machine and then show,
// at different times, that it has no room for it.
func TestMachineThatDoesNotStartFallsBack(t *testing.T) {
	t.Parallel()
	full := fault.New(fault.Capacity, "0/3 nodes are available")
	for name, row := range map[string]struct {
		launched func(h *fixture, m *machine)
		then     func(h *fixture, m *machine)
	}{
		"right after the launch": {launched: func(_ *fixture, m *machine) { m.StartFault = full }},
		"to the sweep": {
			launched: func(h *fixture, _ *machine) { h.runner.stuck = true },
			then:     func(h *fixture, m *machine) { h.runner.stuck, m.StartFault = false, full; h.sweep() },
		},
		"to the sweep, already gone": {
			launched: func(h *fixture, _ *machine) { h.runner.stuck = true },
			then: func(h *fixture, m *machine) {
				h.runner.stuck, m.StartFault, m.Phase = false, full, port.MachineGone
				h.sweep()
			},
		},
		"at the start limit": {
			launched: func(h *fixture, _ *machine) { h.runner.stuck = true },
			then: func(h *fixture, m *machine) {
				h.runner.stuck, m.StartFault = false, full
				h.advance(h.config.Policy.StartTimeout + 2*time.Second)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fallsBack(t)
			h.runner.during = func(m *machine) error { row.launched(h, m); return nil }
			task := h.post()
			h.advance(time.Second)
			if row.then != nil {
				h.wantState(task, run.ContainerCreating)
				row.then(h, h.runner.launched[0])
			}
			h.advance(5 * time.Second)
			r := h.wantState(task, run.Running)
			if r.Slot.Pool != "spare" || r.Attempt.Number != 2 || r.Spent.Starts != 0 || len(h.runner.launched) != 2 {
				t.Errorf("got attempt %d in pool %s with %d machines and %+v spent, want attempt 2 in spare, two machines, nothing spent",
					r.Attempt.Number, r.Slot.Pool, len(h.runner.launched), r.Spent)
			}
			if s := r.Detour.Steps; len(s) != 1 || s[0].Reason != platform.FallbackCapacity || s[0].Message != full.Message {
				t.Errorf("got %+v, want one step with the platform's message", s)
			}
			if first := h.runner.launched[0]; first.Phase != port.MachineGone || h.runner.live() != 1 {
				t.Errorf("got machine 1 %s and %d live machines, want the first one gone", first.Phase, h.runner.live())
			}
			h.wantHolders("default", 0)
			h.wantHolders("spare", 1)
		})
	}
}

// TestMachineThatDoesNotStartUsesAFurtherStart fails a start for a reason without a fallback:
// the next attempt starts in the same pool.
func TestMachineThatDoesNotStartUsesAFurtherStart(t *testing.T) {
	t.Parallel()
	h := fallsBack(t)
	h.runner.during = func(m *machine) error { m.StartFault = fault.New(fault.Image, "manifest unknown"); return nil }
	task := h.post()
	h.advance(10 * time.Second)
	if r := h.wantState(task, run.Running); r.Slot.Pool != "default" || r.Attempt.Number != 2 || r.Spent.Starts != 1 || h.runner.live() != 1 {
		t.Errorf("got attempt %d in pool %s, %+v spent and %d live machines, want attempt 2 in default, one further start and one machine",
			r.Attempt.Number, r.Slot.Pool, r.Spent, h.runner.live())
	}
}

// TestRegionsOfAPoolPrecedeTheDeployments launches in a pool with regions and in one
// without.
func TestRegionsOfAPoolPrecedeTheDeployments(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *runs.Config) {
		c.Region, c.Runners = "ord", platform.RunnerOffer{Runners: []string{platform.RunnerFly}, FlyApps: []string{"app"}}
	})
	for _, row := range []struct {
		regions []string
		want    string
	}{{nil, "ord"}, {[]string{"fra", "ams"}, ""}} {
		d := pools.Definition{Limit: 5, Placement: platform.Placement{Runner: platform.RunnerFly, Settings: &platform.FlySettings{Regions: row.regions}}}
		_, _, err := h.service.Pools.Put(t.Context(), client, "default", d, change.Precondition{})
		h.ok(err)
		h.clock.to(h.clock.now.Add(2 * time.Second))
		h.post()
		h.advance(time.Second)
		spec := h.runner.last().spec
		if own := platform.SettingsOf[platform.FlySettings](spec.Placement); spec.Region != row.want || own == nil || len(own.Regions) != len(row.regions) {
			t.Errorf("%v: got region %q first and %+v, want %q first", row.regions, spec.Region, own, row.want)
		}
	}
}
