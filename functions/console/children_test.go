package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// fanOut starts a run with a child for each item, two at once.
func (h *home) fanOut(t *testing.T, items ...string) (id string) {
	t.Helper()
	h.job(t, "each", `{"image": "a", "items": [], "maxParallel": 2, "maxFailures": 1, "retryConfig": {"maxRetries": 0}}`)
	values := make([]spec.Value, len(items))
	for i, item := range items {
		text, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		values[i] = spec.Value(text)
	}
	r, _, err := h.System.Jobs.RunJob(t.Context(), jobs.RunRequest{Identity: port.Identity{Tenant: apitest.Tenant, Workspace: "main"}, JobID: "each", Items: values})
	if err != nil {
		t.Fatal(err)
	}
	h.begin(t, r.TaskID)
	return r.ID
}

// begin admits a run with children, which creates the first ones.
func (h *home) begin(t *testing.T, task string) {
	t.Helper()
	h.Admit(t, task)
	if !h.Run(t, task).AwaitsKey() {
		h.Launch(t, task)
	}
}

// end ends a child of a run.
func (h *home) end(t *testing.T, id string, n int, report contract.Callback) {
	t.Helper()
	child := h.Run(t, fmt.Sprintf("%s.%d", id, n)).TaskID
	h.Start(t, child)
	h.Report(t, child, report)
	h.Settle(t, child)
}

const hostileItem = "x\u202e<img src=x onerror=alert(1)>\x1b]8;;javascript:alert(1)\x07"

func TestRunShowsItsChildren(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.fanOut(t, "a.csv", hostileItem, "c", "d", "e")
	b := h.signedIn(t, ownerToken)
	path := "/console/" + ui.RunPath(id)
	b.page(path, "<b>0 of 5</b> have ended; at most 2 at once, at most 1 failure permitted", "The first running children:", `class="run" x="0" y="0"`, "All 5 children")
	h.end(t, id, 0, contract.Callback{Status: contract.StatusSuccess})
	h.end(t, id, 1, contract.Callback{Status: contract.StatusError, Error: "no <b>such</b> page"})
	text := b.page(path, "<b>2 of 5</b> have ended", "The first failed children:", "no &lt;b&gt;such", "x⟨U+202E⟩&lt;img src=x", "children?state=failed")
	if strings.Contains(text, "<img src=x") || strings.Contains(text, "\u202e") || strings.Contains(text, "\x1b") || strings.Contains(text, "javascript:") && strings.Contains(text, `href="javascript:`) {
		t.Error("got an item as markup")
	}
	list := b.page(path+"/children", "All 5", "Succeeded 1", "Failed 1", "Running 2", "Waiting 1", `href="../../runs/`+url.PathEscape(id)+`.0"`, "sortie runs children", "as JSON", "a.csv")
	for state, want := range map[string]int{"": 5, "succeeded": 1, "failed": 1, "running": 2, "waiting": 1, "skipped": 0} {
		query := ""
		if state != "" {
			query = "?state=" + state
		}
		if text := b.page(path + "/children" + query); strings.Count(text, `data-label="index"`) != want {
			t.Errorf("%s: got %d children, want %d in %s", state, strings.Count(text, `data-label="index"`), want, mainPart(list))
		}
	}
	child := b.page(path+".1", "Child of", `href="../runs/`+url.PathEscape(id)+`"`, "index 1", "x⟨U+202E⟩&lt;img")
	if strings.Contains(child, "<img src=x") {
		t.Error("got an item as markup")
	}
	b.page("/console/runs", "item 1: x⟨U+202E⟩")
	b.page("/console/jobs", "<title>newest first: Running</title>") // without the children
	b.page("/console/jobs/each", `<span class="sr">newest first: Running</span>`)
}

// TestChildrenArePaged has more children than a page shows.
func TestChildrenArePaged(t *testing.T) {
	t.Parallel()
	h := setup(t)
	items := make([]string, 120)
	for i := range items {
		items[i] = fmt.Sprintf("item-%03d", i)
	}
	id := h.fanOut(t, items...)
	b := h.signedIn(t, ownerToken)
	first := b.page("/console/"+ui.RunPath(id)+"/children", "item-000", "item-049", "Next ›")
	_, rest, _ := strings.Cut(first, `rel="next"`)
	at := strings.LastIndex(first[:len(first)-len(rest)], `href="../../`)
	next, _, _ := strings.Cut(first[at+len(`href="../../`):], `"`)
	b.page("/console/"+strings.ReplaceAll(next, "&amp;", "&"), "item-050", "item-099", "« First")
	for query, want := range map[string]int{"state=gone": 400, "state=": 200, "cursor=x": 400, "limit=1": 400, "cursor=9999": 200} {
		if answer := b.get("/console/" + ui.RunPath(id) + "/children?" + query); answer.Status != want {
			t.Errorf("%s: got %d, want %d", query, answer.Status, want)
		}
	}
	if answer := h.signedIn(t, otherToken).get("/console/" + ui.RunPath(id) + "/children"); answer.Status != http.StatusNotFound {
		t.Errorf("another tenant: got %d, want 404", answer.Status)
	}
	none := h.program(t, `{"image":"a"}`)
	b.page("/console/"+ui.RunPath(none)+"/children", "This run has no children", "sortie jobs run JOB --items FILE")
	if strings.Contains(b.page("/console/"+ui.RunPath(none)), "h-children") {
		t.Error("got children of a run without them")
	}
}

// TestUnsuccessfulChildrenAreRunAgain ends a run with a failed child.
func TestUnsuccessfulChildrenAreRunAgain(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.fanOut(t, "a", "b")
	h.end(t, id, 0, contract.Callback{Status: contract.StatusSuccess})
	h.end(t, id, 1, contract.Callback{Status: contract.StatusError, Error: "broken"})
	h.Settle(t, h.Run(t, id).TaskID)
	b := h.signedIn(t, ownerToken)
	b.page("/console/"+ui.RunPath(id), "Rerun unsuccessful (1)", `name="only" value="failed"`)
	answer := b.post("/console/"+ui.RunPath(id)+"/rerun", "only", "failed", "key", "console-1")
	to, ok := strings.CutSuffix(answer.Header.Get("Location"), "?done=rerun")
	if answer.Status != http.StatusSeeOther || !ok {
		t.Fatalf("got %d %s, want a run", answer.Status, answer.Body)
	}
	task, _ := apitest.Decoded[contract.Task](t, h.Stage, http.MethodGet, "/v1"+strings.TrimPrefix(to, "/console"), "", http.StatusOK, bearer...)
	h.begin(t, task.TaskID)
	if c := h.Run(t, task.RunID).Fan.Counts(); c.Total != 1 || c.Running != 1 {
		t.Errorf("got %+v, want the child that has failed", c)
	}
	if text := h.signedIn(t, readerToken).page("/console/" + ui.RunPath(id)); strings.Contains(text, "Rerun") {
		t.Error("got an action for a reader")
	}
}
