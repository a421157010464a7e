package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/forecast"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// TestTimesHaveMilliseconds encodes times whose seconds are not exact in a float64.
func TestTimesHaveMilliseconds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, late := range []time.Duration{3829 * time.Millisecond, 4015 * time.Millisecond, 1100*time.Millisecond + 1, 300 * time.Millisecond, 8203 * time.Millisecond, 0} {
		r := run.Run{State: run.Running, CreatedAt: at, EnteredAt: at, ScheduledAt: at, FiredAt: at.Add(late), Attempt: run.Attempt{Number: 1}}
		text, err := json.Marshal(api.Task(runs.View{Run: r, At: at.Add(late)}))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.TrimRight(strings.TrimRight(time.UnixMilli(0).UTC().Add(late).Format("5.000"), "0"), ".")
		if late < time.Second && late > 0 {
			want = "0.3"
		}
		if late == 0 {
			want = "0"
		}
		for _, field := range []string{"latenessSeconds", "executionSeconds", "totalSeconds"} {
			if !strings.Contains(string(text), `"`+field+`":`+want+`,`) && !strings.Contains(string(text), `"`+field+`":`+want+`}`) {
				t.Errorf("%s: got %s, want %s %s", late, text, field, want)
			}
		}
	}
}

// TestStartOfTheRunIsItsFirst expects the first start of the run, in addition to that of the
// current attempt.
func TestStartOfTheRunIsItsFirst(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	second := first.Add(time.Minute)
	for name, r := range map[string]run.Run{
		"first attempt":  {StartedAt: first, Attempt: run.Attempt{Number: 1, StartedAt: first}},
		"second attempt": {StartedAt: first, Attempt: run.Attempt{Number: 2, StartedAt: second}},
		"older record":   {Attempt: run.Attempt{Number: 1, StartedAt: first}},
	} {
		task, status := api.Task(runs.View{Run: r}), api.Status(runs.View{Run: r})
		if !task.StartedAt.Equal(first) || !status.StartedAt.Equal(first) || (r.Attempt.Number > 1) != task.AttemptStartedAt.Equal(second) {
			t.Errorf("%s: got %v and %v, the attempt's %v", name, task.StartedAt, status.StartedAt, task.AttemptStartedAt)
		}
	}
}

// TestEndedRunHasNoPrediction explains a run before its end, and after its end with and without
// a start. Only with a start does the prediction show its error.
func TestEndedRunHasNoPrediction(t *testing.T) {
	t.Parallel()
	for state, want := range map[run.State]bool{run.Pending: true, run.Completed: false, run.Failed: false, run.Cancelled: false} {
		shown := api.Explanation(jobs.ExplainedRun{Run: run.Run{State: state, Prediction: &forecast.Prediction{}}})
		if (shown.Prediction != nil) != want || !want && shown.Expected != nil {
			t.Errorf("%s: got the prediction %+v, want one: %v", state, shown.Prediction, want)
		}
		started := forecast.Prediction{Started: time.Unix(1, 0)}
		if shown := api.Explanation(jobs.ExplainedRun{Run: run.Run{State: state, Prediction: &started}}); shown.Prediction == nil {
			t.Errorf("%s: got no prediction of a run that has started, want it with its error", state)
		}
	}
}
