package graph_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/console/graph"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func drawn(t *testing.T, jobs []contract.GraphJob, here string, runs bool) string {
	t.Helper()
	var text bytes.Buffer
	if err := graph.Of(jobs, here, runs).Content(&ui.Layout{Root: "../"}).Render(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func after(ids ...string) (all []contract.GraphAfter) {
	for _, id := range ids {
		all = append(all, contract.GraphAfter{JobID: id, When: "success"})
	}
	return all
}

// TestJobsAreBehindThoseBeforeThem draws a diamond with a job for failures.
func TestJobsAreBehindThoseBeforeThem(t *testing.T) {
	t.Parallel()
	jobs := []contract.GraphJob{
		{JobID: "load", RunID: "load:1", State: "Completed"},
		{JobID: "clean", After: after("load"), RunID: "clean:1", State: "Running"},
		{JobID: "count", After: after("load"), RunID: "count:1", State: "Completed", Skipped: true},
		{JobID: "alarm", After: []contract.GraphAfter{{JobID: "load", When: "failure"}}, Paused: true},
		{JobID: "report", Name: "Sales", After: after("clean", "count", "elsewhere")},
	}
	text := drawn(t, jobs, "clean", true)
	for _, want := range []string{
		`viewBox="0 0 730 144"`, `<g class="here">`, `href="../runs/load:1"`, `href="../jobs/report"`, "not started", "after a failure", `href="#i-skip"`, `href="#i-play"`,
		"Skipped", "this job", "As a table",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in %s", want, text)
		}
	}
	if n := strings.Count(text, "<path"); n != 5 {
		t.Errorf("got %d edges, want 5", n)
	}
	if text := drawn(t, jobs, "clean", false); strings.Contains(text, "not started") || !strings.Contains(text, "paused") {
		t.Errorf("got states of runs on the page of a job: %s", text)
	}
	if graph.Of(jobs[:1], "load", true).Content(&ui.Layout{}) != nil {
		t.Error("got a picture of a job alone")
	}
}

// TestLongEdgesPassBesideJobs draws an edge that passes a column.
func TestLongEdgesPassBesideJobs(t *testing.T) {
	t.Parallel()
	text := drawn(t, []contract.GraphJob{
		{JobID: "a"}, {JobID: "b", After: after("a")}, {JobID: "c", After: []contract.GraphAfter{{JobID: "a", When: "always"}, {JobID: "b", When: "success"}}},
	}, "c", false)
	if want := `d="M170 46C225 46 225 72 280 72H450C505 72 505 46 560 46"`; !strings.Contains(text, want) {
		t.Errorf("got no %s in %s", want, text)
	}
}

// TestHostileNamesAreShown draws names with markup and characters that change the direction.
func TestHostileNamesAreShown(t *testing.T) {
	t.Parallel()
	bad := `"><script>alert(1)</script>` + "\u202e\x00" + strings.Repeat("w", 5000)
	text := drawn(t, []contract.GraphJob{{JobID: bad, Name: bad, RunID: bad, State: "Completed"}, {JobID: "b", Name: bad, After: []contract.GraphAfter{{JobID: bad, When: bad}}}}, "b", true)
	if strings.Contains(text, "<script") || strings.Contains(text, "\u202e") || strings.Contains(text, "\x00") {
		t.Errorf("got a text as markup in %.3000s", text)
	}
	if len(text) > 120_000 {
		t.Errorf("got %d bytes, want long names cut", len(text))
	}
}

// TestLargeGraphs draws the largest chain and the widest graph.
func TestLargeGraphs(t *testing.T) {
	t.Parallel()
	chain, wide := []contract.GraphJob{{JobID: "0"}}, []contract.GraphJob{{JobID: "0"}}
	for i := 1; i < 100; i++ {
		id := fmt.Sprint(i)
		chain = append(chain, contract.GraphJob{JobID: id, After: after(fmt.Sprint(i - 1))})
		wide = append(wide, contract.GraphJob{JobID: id, After: after("0")})
	}
	if p := graph.Of(chain, "0", false); p.Width != 100*280-110 || p.Height != 40 {
		t.Errorf("got %d by %d for a chain", p.Width, p.Height)
	}
	if p := graph.Of(wide, "0", false); p.Width != 450 || p.Height != 99*52-12 {
		t.Errorf("got %d by %d for a wide graph", p.Width, p.Height)
	}
}
