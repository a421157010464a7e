package job_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

func TestSimulateRange(t *testing.T) {
	t.Parallel()
	d := hourly(t, "")
	for name, row := range map[string]struct {
		until time.Duration
		limit int
		want  int
	}{
		"from is exclusive":  {59 * time.Minute, 100, 0},
		"until is inclusive": {2 * time.Hour, 100, 2},
		"limit":              {1000 * time.Hour, 3, 3},
		"empty range":        {-time.Hour, 100, 0},
	} {
		if got := job.Simulate(d, noon, noon.Add(row.until), row.limit); len(got) != row.want {
			t.Errorf("%s: got %v, want %d firings", name, got, row.want)
		}
	}
	if got := job.Simulate(parseJob(t, "id: a\nimage: b\n"), noon, noon.Add(time.Hour), 5); len(got) != 0 {
		t.Errorf("got %v without a schedule, want none", got)
	}
}

func TestSimulateShowsLocalTime(t *testing.T) {
	t.Parallel()
	d := parseJob(t, "id: a\nimage: b\nschedule: \"30 2 * * *\"\ntimeZone: Europe/Berlin\n")
	from := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	var got []string
	for _, f := range job.Simulate(d, from, from.AddDate(0, 0, 3), 10) {
		got = append(got, f.ScheduledAt.UTC().Format(time.RFC3339)+" "+f.ScheduledAt.Format(time.RFC3339))
	}
	want := []string{
		"2026-03-28T01:30:00Z 2026-03-28T02:30:00+01:00",
		"2026-03-29T01:00:00Z 2026-03-29T03:00:00+02:00", // 02:30 does not exist
		"2026-03-30T00:30:00Z 2026-03-30T02:30:00+02:00",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSimulateNamesConstraints(t *testing.T) {
	t.Parallel()
	d := parseJob(t, sample(t, "every-field.yaml"))
	monday := time.Date(2026, 3, 2, 12, 50, 0, 0, time.UTC)
	firings := job.Simulate(d, monday, monday.Add(time.Hour), 1)
	want := "2026-03-02 08:00:00 -0500 EST depends [" +
		"maxConcurrentRuns: starts while fewer than 2 of the job's runs are under way; otherwise older runs are cancelled first " +
		"requirePreviousSuccess: starts if the last run before 2026-03-02T13:00:00Z succeeded; otherwise the firing is skipped " +
		"catchUpWindow: starts until 2026-03-02T14:30:00Z; otherwise it waits for at most 10m " +
		"preRunHook: starts if https://example.org/may-start allows it; otherwise it is checked every 30s for at most 10m]"
	if got := fmt.Sprintf("%s %s %s", firings[0].ScheduledAt, firings[0].Decision, firings[0].Reasons); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSimulateOutages runs an hourly job through two outages that overlap, one that contains no
// firing, and one that ends at the time of a firing.
func TestSimulateOutages(t *testing.T) {
	t.Parallel()
	at := func(hour, minute int) time.Time {
		return noon.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	}
	down := []job.Outage{{at(5, 30), at(7, 0)}, {at(2, 0), at(4, 2)}, {at(1, 50), at(3, 0)}, {at(4, 10), at(4, 50)}}
	const limit = "constraints: {maxConcurrentRuns: 1}\n"
	for more, want := range map[string]string{
		"":                       "1+0 run, 2x2 skip, 4+2 run, 5+0 run, 6x1 skip, 7+0 run, 8+0 run",
		"missed: none\n":         "1+0 run, 2x3 skip, 5+0 run, 6x1 skip, 7+0 run, 8+0 run",
		"startingDeadline: 1m\n": "1+0 run, 2x3 skip, 5+0 run, 6x1 skip, 7+0 run, 8+0 run",
		"missed: all\nstartingDeadline: 63m\n" + limit: "1+0 depends, 2x1 skip, 3+62 depends in turn, 4+2 depends in turn, 5+0 depends, 6+60 depends in turn, 7+0 depends in turn, 8+0 depends",
		"constraints: {catchUp: true}\n":               "1+0 run, 2+122 run, 3+62 run, 4+2 run, 5+0 run, 6+60 run, 7+0 run, 8+0 run",
	} {
		var got []string
		for _, f := range job.Simulate(hourly(t, more), noon, at(8, 0), 100, down...) {
			line := fmt.Sprintf("%d+%d %s", f.ScheduledAt.Hour()-12, f.FiredAt.Sub(f.ScheduledAt)/time.Minute, f.Decision)
			if f.Decision == job.DecisionSkip {
				line = fmt.Sprintf("%dx%d %s", f.ScheduledAt.Hour()-12, f.Count, f.Decision)
			} else if strings.Contains(strings.Join(f.Reasons, " "), "after the runs of earlier times") {
				line += " in turn"
			}
			got = append(got, line)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: got %s, want %s", more, strings.Join(got, ", "), want)
		}
	}
}
