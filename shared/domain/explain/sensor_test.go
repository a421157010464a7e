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

func TestJobWithAPolledSensorShowsItsState(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	j := job.Create("acme", job.Definition{ID: "scan", Image: "a", Sensor: &sensor.Settings{Bucket: &sensor.Bucket{}}}, "me", now)
	polled, _ := sensor.State{}.Polled(3, time.Minute, now)
	failed, _ := polled.Failed("no answer from s3.example", time.Minute, now.Add(time.Minute))
	for want, state := range map[string]sensor.State{
		"not finished a poll yet":                                     {},
		"polled at 2026-03-01T08:00:00Z and knows 3 objects":          polled,
		"fails since 2026-03-01T08:01:00Z: no answer from s3.example": failed,
		"refused an item at 2026-03-01T08:00:00Z: in/a: too long":     polled.Refuse("in/a", "too long", now),
	} {
		if x := explain.Job(j, explain.JobFacts{Now: now, Sensor: &state}); !strings.Contains(x.Message, want) {
			t.Errorf("got %q, want %q", x.Message, want)
		}
	}
}
