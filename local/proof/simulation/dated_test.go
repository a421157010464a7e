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
	for _, seed := range []uint64{49, 199, 40, 190, 240} {
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
		all.Late += o.Dated.Late
	}
	if all.Firings < 10 || all.Backfilled < 10 || all.Stopped < 1 || all.Notices < 10 || all.Deleted < 5 || all.Kept < 3 || all.Late < 3 {
		t.Errorf("got %+v, want at least 10 firings, 10 runs of backfills, 1 of them stopped, 10 messages, 5 deleted outputs, 3 kept ones and 3 late pins", all)
	}
}
