package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/functions/console/uitest"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestJobHasItsFigures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	run := func(state string, took time.Duration) contract.JobResult {
		return contract.JobResult{State: state, StartedAt: now.Add(-took), EndedAt: now}
	}
	row := jobRow{JobSummary: contract.JobSummary{ID: "job"}, Results: resultsOf([]contract.JobResult{run("Completed", 20*time.Second), run("Completed", 70*time.Second), run("Failed", time.Hour)}, now)}
	text := uitest.Text(t, row.row(&ui.Layout{Root: "./", Now: now}, false))
	for _, want := range []string{"2 of 3", "p95 1 min 10 s", "newest first: 2 Completed, Failed"} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in %s", want, text)
		}
	}
}

// TestResultsAreDrawn has a run of each shape.
func TestResultsAreDrawn(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	history := []contract.JobResult{
		{State: "Running", StartedAt: now.Add(-time.Minute)},
		{State: "Completed", Skipped: true},
		{State: "Cancelled"},
		{State: "Failed", StartedAt: now.Add(-time.Minute), EndedAt: now},
		{State: "Completed", StartedAt: now.Add(-time.Second), EndedAt: now},
	}
	text := uitest.Text(t, resultsOf(history, now).sketch())
	for _, want := range []string{
		`<title>newest first: Running, Skipped, Cancelled, Failed, Completed</title>`, `<path class="good" d="M3 24V19">`,
		`<path class="bad" d="M11 24V7">`, `<path class="bad mark" d="M8.5 .5l5 5m0-5-5 5">`, `<path class="off hollow" d="M24.5 20a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M16 24V19h6V24z">`,
		`<path class="run hollow" d="M32 24V7h6V24z">`, `<path class="run thin" d="M33 24V7">`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %s in %s", want, text)
		}
	}
}

// TestPageOfJobsIsSmall has as many jobs and results as a page shows, in changing states.
func TestPageOfJobsIsSmall(t *testing.T) {
	t.Parallel()
	text := uitest.Text(t, manyJobs(func(n int) string { return []string{"Completed", "Failed", "Cancelled"}[n%3] }).content(&ui.Layout{
		Root: "./", Here: "jobs", Permits: func(access.Scope) bool { return true },
	}))
	if most := 95 << 10; len(text) > most || strings.Count(text, "<tr data-job") != jobsLimit {
		t.Errorf("got %d bytes for %d jobs, want at most %d for %d", len(text), strings.Count(text, "<tr data-job"), most, jobsLimit)
	}
}

// manyJobs returns the content of a full page.
func manyJobs(state func(n int) string) jobsData {
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	list := jobsData{}
	var history []contract.JobResult
	for n := range resultsShown {
		history = append(history, contract.JobResult{State: state(n), StartedAt: now.Add(-time.Minute), EndedAt: now})
	}
	for n := range jobsLimit {
		list.Jobs = append(list.Jobs, jobRow{
			JobSummary: contract.JobSummary{ID: fmt.Sprintf("job-%d", n), Schedule: "30 2 * * *", TimeZone: "Europe/Berlin", JobState: contract.JobState{NextAt: now}},
			What:       "registry.example.org/report:1", State: ui.StateOf("Completed", false), Words: "every day at 2:30", Local: "Sun 29 Nov 02:30", Results: resultsOf(history, now),
			Key: "console-53d06760a470fa16658b232f",
		})
	}
	return list
}

func BenchmarkJobs(b *testing.B) {
	list := manyJobs(func(int) string { return "Completed" })
	l := &ui.Layout{Root: "../"}
	b.ReportAllocs()
	for b.Loop() {
		uitest.Text(b, list.content(l))
	}
}
