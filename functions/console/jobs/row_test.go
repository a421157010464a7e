package jobs

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"maragu.dev/gomponents"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func rowText(t testing.TB, node gomponents.Node) string {
	t.Helper()
	var text bytes.Buffer
	if err := node.Render(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestJobHasItsFigures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	run := func(state string, took time.Duration) contract.JobResult {
		return contract.JobResult{State: state, StartedAt: now.Add(-took), EndedAt: now}
	}
	row := jobRow{JobSummary: contract.JobSummary{ID: "job"}, Results: resultsOf([]contract.JobResult{run("Completed", 20*time.Second), run("Completed", 70*time.Second), run("Failed", time.Hour)}, now)}
	text := rowText(t, row.row(&ui.Layout{Root: "./", Now: now}, false))
	for _, want := range []string{"2 of 3", "p95 1 min 10 s", "newest first: Completed, Completed, Failed"} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in %s", want, text)
		}
	}
}

func BenchmarkJobs(b *testing.B) {
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	list := jobsData{}
	var history []contract.JobResult
	for range 30 {
		history = append(history, contract.JobResult{State: "Completed", StartedAt: now.Add(-time.Minute), EndedAt: now})
	}
	for n := range 50 {
		list.Jobs = append(list.Jobs, jobRow{
			JobSummary: contract.JobSummary{ID: fmt.Sprintf("job-%d", n), Schedule: "30 2 * * *", TimeZone: "Europe/Berlin", JobState: contract.JobState{NextAt: now}},
			What:       "registry.example.org/report:1", State: ui.StateOf("Completed", false), Words: "every day at 2:30", Local: "Sun 29 Nov 02:30", Results: resultsOf(history, now),
		})
	}
	l := &ui.Layout{Root: "../", Now: now}
	b.ReportAllocs()
	for b.Loop() {
		rowText(b, list.content(l))
	}
}
