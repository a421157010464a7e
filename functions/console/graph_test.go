package console_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestDependenciesAreDrawn opens the pages of a job and of a run whose job others come after.
func TestDependenciesAreDrawn(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	for _, job := range []string{
		`{"id":"load","image":"registry.example.org/load:1"}`,
		`{"id":"report","name":"<b>Sales</b>","image":"registry.example.org/report:1","after":["load"]}`,
		`{"id":"alarm","image":"registry.example.org/alarm:1","after":[{"job":"load","when":"failure"}]}`,
		`{"id":"alone","image":"registry.example.org/alone:1"}`,
	} {
		id, _, _ := strings.Cut(strings.TrimPrefix(job, `{"id":"`), `"`)
		h.owner(t, http.MethodPut, "/v1/jobs/"+id, job, http.StatusCreated)
	}
	text := b.page("/console/jobs/report", "Dependencies", `class="lineage graph"`, "after a failure", `href="../jobs/load"`, "this job", "&lt;b&gt;Sales")
	if strings.Contains(text, "<b>Sales") || strings.Contains(text, "not started") {
		t.Error("got markup of a name, or states of runs on the page of a job")
	}
	if strings.Contains(b.page("/console/jobs/alone"), "Dependencies") {
		t.Error("got a graph of a job alone")
	}
	id := h.program(t, `{"image":"registry.example.org/alone:1"}`)
	if strings.Contains(b.page("/console/runs/"+id), "Dependencies") {
		t.Error("got a graph of a run without a job")
	}
	answer := b.post("/console/jobs/load/run")
	at, ok := strings.CutSuffix(answer.Header.Get("Location"), "?done=job-run")
	if !ok {
		t.Fatalf("got %d %s, want a run", answer.Status, answer.Header.Get("Location"))
	}
	b.page(at, "Dependencies", "not started", `href="../jobs/report"`, `<g class="here">`)
	h.owner(t, http.MethodPost, "/v1"+strings.TrimPrefix(at, "/console")+"/cancel", "{}", http.StatusOK)
	b.page(at, "Dependencies", `href="#i-slash"`)
}
