package simulation_test

import (
	"testing"

	"github.com/sortie-dev/sortie/local/proof/simulation"
)

// TestDates runs worlds of several days of each home: schedules with calendars, backfills, kept
// outputs and messages.
func TestDates(t *testing.T) {
	t.Parallel()
	var all simulation.DatedCounts
	for _, seed := range []uint64{49, 149, 199, 549, 40, 140, 190, 690} {
		o, err := simulation.Run(t.Context(), seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range o.Problems {
			t.Errorf("seed %d: %s", seed, problem)
		}
		t.Logf("seed %d: %+v in %d steps, %s", seed, o.Dated, o.Steps, o.Took)
		all.Firings, all.Backfilled, all.Stopped = all.Firings+o.Dated.Firings, all.Backfilled+o.Dated.Backfilled, all.Stopped+o.Dated.Stopped
		all.Notices, all.Deleted, all.Kept = all.Notices+o.Dated.Notices, all.Deleted+o.Dated.Deleted, all.Kept+o.Dated.Kept
	}
	if all.Firings < 20 || all.Backfilled < 10 || all.Stopped < 3 || all.Notices < 10 || all.Deleted < 10 || all.Kept < 3 {
		t.Errorf("got %+v, want at least 20 firings, 10 runs of backfills, 3 of them stopped, 10 messages, 10 deleted outputs and 3 kept ones", all)
	}
}
