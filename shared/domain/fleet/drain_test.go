package fleet_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestDrainHasPhases reads the phase of a drain while its runs end.
func TestDrainHasPhases(t *testing.T) {
	t.Parallel()
	open := platform.Pool{ID: "p"}
	by := epoch.Add(time.Minute)
	in := func(states ...run.State) (runs []run.Run) {
		for _, s := range states {
			runs = append(runs, run.Run{State: s})
		}
		return runs
	}
	for name, row := range map[string]struct {
		pool      platform.Pool
		remaining []run.Run
		warm      int
		now       time.Time
		want      fleet.DrainPhase
	}{
		"open":               {open, in(run.Running), 0, by, ""},
		"before":             {open.Drain(by, "x", epoch), in(run.Running, run.Terminating), 0, epoch, fleet.DrainWaiting},
		"without a deadline": {open.Drain(time.Time{}, "x", epoch), in(run.Running), 0, by, fleet.DrainWaiting},
		"after":              {open.Drain(by, "x", epoch), in(run.Running, run.Terminating), 0, by, fleet.DrainEnding},
		"ended attempts":     {open.Drain(by, "x", epoch), in(run.Terminating), 0, by, fleet.DrainStopping},
		"warm machines":      {open.Drain(by, "x", epoch), nil, 2, by, fleet.DrainStopping},
		"nothing":            {open.Drain(by, "x", epoch), nil, 0, by, fleet.DrainDone},
	} {
		if got := fleet.DrainPhaseOf(row.pool, row.remaining, row.warm, row.now); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}
