package run_test

import (
	"maps"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestJobAfterABackfillBelongsToIt checks the label, the priority and the window of a run after one
// of a backfill.
func TestJobAfterABackfillBelongsToIt(t *testing.T) {
	t.Parallel()
	name := map[string]string{run.BackfillLabel: "week"}
	for what, row := range map[string]struct {
		from run.Run
		want bool
	}{
		"a backfill":             {run.Run{Trigger: run.TriggerBackfill, Labels: name, Priority: spec.PriorityBatch}, true},
		"a job after a backfill": {run.Run{Trigger: run.TriggerAfter, Labels: name, Priority: spec.PriorityBatch}, true},
		"a schedule":             {run.Run{Trigger: run.TriggerSchedule, Labels: name, Priority: spec.PriorityInteractive}, false},
		"a job after another":    {run.Run{Trigger: run.TriggerAfter, Priority: spec.PriorityInteractive}, false},
	} {
		at := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
		r := run.Run{
			Trigger: run.TriggerAfter, Labels: map[string]string{"team": "data"}, ScheduledAt: at,
			Constraints: &spec.Constraints{CatchUpWindow: time.Hour},
		}
		own := maps.Clone(r.Labels)
		got := r.JoinBackfill(row.from)
		_, late := got.Lateness(at.AddDate(1, 0, 0))
		if got.Backfills() != row.want || (got.Priority == spec.PriorityBatch) != row.want || late == row.want || got.Labels["team"] != "data" {
			t.Errorf("after %s: got labels %v, priority %q, late %v; want the backfill %v", what, got.Labels, got.Priority, late, row.want)
		}
		if !maps.Equal(r.Labels, own) {
			t.Errorf("after %s: the labels of the job changed to %v", what, r.Labels)
		}
	}
}
