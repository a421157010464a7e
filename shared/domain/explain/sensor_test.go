package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
)

func TestJobWithASensorWaitsForEvents(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	j := job.Create("acme", job.Definition{ID: "order", Image: "a", Sensor: &sensor.Settings{CloudEvent: &sensor.CloudEvents{}}}, "me", now)
	facts := explain.JobFacts{Now: now, Runs: []run.Run{{ID: "order:1", State: run.Completed, Trigger: run.TriggerEvent}}}
	if x := explain.Job(j, facts); x.Reason != explain.JobUnscheduled || x.Change != nil || !strings.Contains(x.Message, "events") || x.Last == nil || x.Last.Run.ID != "order:1" {
		t.Errorf("got %+v, want events to run it, and the last run", x)
	}
	if x := explain.Job(j.Pause(now), facts); x.Reason != explain.JobPaused || x.Change == nil || x.Change.Kind != explain.ResumeJob {
		t.Errorf("got %+v, want the pause and how it ends", x)
	}
}
