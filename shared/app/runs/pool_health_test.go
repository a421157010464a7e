package runs_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func (h *fixture) health() pools.Health {
	h.Helper()
	health, err := h.service.Pools.Health(h.Context(), client, "default")
	h.ok(err)
	return health
}

// TestHealthHasTheStarts measures three starts, and throttles a fourth one.
func TestHealthHasTheStarts(t *testing.T) {
	t.Parallel()
	h := setup(t)
	if got := h.health(); got.Starts != 0 || got.StartP99 != 0 || got.StartRate != 0 {
		t.Errorf("got %+v of a new pool, want no starts", got)
	}
	h.runner.stuck = true
	for _, pause := range []time.Duration{2 * time.Second, 12 * time.Second, 30 * time.Second} {
		task := h.post()
		m := h.runner.last()
		if got := h.health(); got.Machines != 1 || got.Starting != 1 {
			t.Errorf("got %d machines, of which %d start, want one that starts", got.Machines, got.Starting)
		}
		h.advance(pause)
		m.Phase = port.MachineRunning
		h.sweep()
		if got := h.health(); got.Machines != 1 || got.Starting != 0 {
			t.Errorf("got %d machines, of which %d start, want one that runs", got.Machines, got.Starting)
		}
		h.ok(h.report(m, success()))
		h.step()
		h.wantState(task, run.Completed)
	}
	h.runner.stuck = false
	h.limitStarts(0)
	h.post()
	h.clock.to(h.clock.now.Add(2 * time.Minute)) // longer than measures are used
	got := h.health()
	wait := h.config.LaunchWait // of the launch that waits for its machine
	if got.Starts != 3 || got.StartP50 < 12*time.Second || got.StartP50 > 12*time.Second+2*wait || got.StartP99 < 30*time.Second || got.StartP99 > 30*time.Second+2*wait {
		t.Errorf("got %d starts of %s and %s, want 3 of 12 s and 30 s", got.Starts, got.StartP50, got.StartP99)
	}
	if got.StartRate <= 0 || got.StartRate > 1 {
		t.Errorf("got %v starts a second of a platform that throttles, want up to one", got.StartRate)
	}
}

// TestHealthSaysWhatADrainWaitsFor drains a pool with a run whose end is then requested.
func TestHealthSaysWhatADrainWaitsFor(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	h.advance(time.Second)
	h.wantState(task, run.Running)
	h.drain("default", new(60))
	if got := h.health(); len(got.Remaining) != 1 || got.Remaining[0].TaskID != task || got.Remaining[0].EndRequest() != nil || got.DrainPhase != fleet.DrainWaiting || got.Left != 1 {
		t.Errorf("got %+v in phase %s, want the running run", got.Remaining, got.DrainPhase)
	}
	h.advance(2 * time.Minute)
	h.sweep()
	if got := h.health(); len(got.Remaining) != 1 || got.Remaining[0].EndRequest() == nil || got.DrainPhase != fleet.DrainEnding {
		t.Errorf("got %+v in phase %s after the deadline, want the run, asked to end", got.Remaining, got.DrainPhase)
	}
	h.runner.last().exit(0)
	h.sweep()
	h.advance(time.Minute)
	if got := h.health(); len(got.Remaining) != 0 || got.Held != 0 || got.Left != 0 || got.DrainPhase != fleet.DrainDone || got.Queued != 1 {
		t.Errorf("got %+v in phase %s with %d queued, want nothing but the queued run", got.Remaining, got.DrainPhase, got.Queued)
	}
}
