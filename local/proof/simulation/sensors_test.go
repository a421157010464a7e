package simulation_test

import (
	"testing"

	"github.com/sortie-dev/sortie/local/proof/simulation"
)

// TestSensors runs worlds of each home whose jobs have sensors.
func TestSensors(t *testing.T) {
	t.Parallel()
	var all simulation.ItemCounts
	for _, seed := range []uint64{30, 130, 39, 89} {
		o, err := simulation.Run(t.Context(), seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range o.Problems {
			t.Errorf("seed %d: %s", seed, problem)
		}
		t.Logf("seed %d: %+v in %d steps, %s", seed, o.Items, o.Steps, o.Took)
		all.Items, all.Repeated, all.Killed = all.Items+o.Items.Items, all.Repeated+o.Items.Repeated, all.Killed+o.Items.Killed
	}
	if all.Items < 30 || all.Repeated < 50 || all.Killed < 20 {
		t.Errorf("got %+v, want at least 30 items, 50 repeated ones and 20 killed polls", all)
	}
}
