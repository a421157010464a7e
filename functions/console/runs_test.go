package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

func TestEmptyListSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b := setup(t).signedIn(t, ownerToken)
	b.page("/console/runs", "There are no runs yet", "sortie export mods", "as JSON")
	b.page("/console/runs?state=Failed", "No run matches", `<a href="./runs" title="Remove this filter">state: <b><bdi>Failed`)
}

func TestRunsAreListedByPage(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ids := map[string]bool{}
	for n := range 120 {
		ids[h.program(t, fmt.Sprintf(`{"image":"image-%d"}`, n))] = true
	}
	b := h.signedIn(t, ownerToken)
	row, older := regexp.MustCompile(`data-run="([^"]+)"`), regexp.MustCompile(`href="\./([^"]+)" rel="next"`)
	path, pages := "/console/runs?kind=job", 0
	for path != "" {
		text := b.page(path)
		if pages++; pages > 1 && !strings.Contains(text, `href="./runs?kind=job">« Newest`) {
			t.Error("got no link to the newest runs")
		}
		for _, found := range row.FindAllStringSubmatch(text, -1) {
			if !ids[found[1]] {
				t.Errorf("got the run %s twice", found[1])
			}
			delete(ids, found[1])
		}
		path = ""
		if next := older.FindStringSubmatch(text); next != nil {
			path = "/console/" + strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	if pages != 3 || len(ids) != 0 {
		t.Errorf("got %d pages without %d runs, want 3 with all runs", pages, len(ids))
	}
}

func TestRunsAreFiltered(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.program(t, `{"image":"one"}`)
	export := h.Accept(t)
	b := h.signedIn(t, ownerToken)
	for query, want := range map[string]string{
		"kind=export": export, "state=Pending&kind=export": export, "kind=export&since=1h": export, "kind=export&since=": export, "kind=+export+": export,
	} {
		if text := b.page("/console/runs?"+query, want); strings.Contains(text, ">one<") {
			t.Errorf("%s: got a run of another kind", query)
		}
	}
	b.page("/console/runs?since=24h&state=Failed", `aria-current="true">Failed in the last day`, "sortie runs --state Failed --since 24h")
	for query, field := range map[string]string{"state=Gone": "state", "since=2h": "since", "cursor=x": "cursor", "none=1": "none", "kind=a&kind=b": "kind", "createdAfter=yesterday": "createdAfter"} {
		answer := b.get("/console/runs?" + query)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "<code>"+field) || !strings.Contains(answer.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: got %d %s, want a page about %s", query, answer.Status, answer.Body, field)
		}
	}
}

func TestScopesDecideWhatIsShown(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.program(t, `{"image":"a"}`)
	h.signedIn(t, ownerToken).page("/console/runs/"+id, "/cancel\"")
	reader := h.signedIn(t, readerToken)
	if text := reader.page("/console/runs/" + id); strings.Contains(text, "/cancel\"") {
		t.Error("got an action for a reader")
	}
	if answer := reader.post("/console/runs/" + id + "/cancel"); answer.Status != http.StatusForbidden || h.Run(t, id).Cancel != nil {
		t.Errorf("got %d, want 403 and no cancel request", answer.Status)
	}
}

func TestRunsOfAnotherTenantAreUnknown(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.program(t, `{"image":"a"}`)
	other := h.signedIn(t, otherToken)
	if text := other.page("/console/runs"); strings.Contains(text, id) {
		t.Error("got a run of another tenant in the list")
	}
	for _, path := range []string{"/console/runs/" + id, "/console/json/v1/runs/" + id, "/console/json/v1/tasks/" + id + "/events", "/console/json/v1/tasks/" + id + "/logs", "/console/json/download/" + id} {
		if answer := other.get(path); answer.Status != http.StatusNotFound || strings.Contains(answer.Body, `"image"`) {
			t.Errorf("%s: got %d %s, want 404", path, answer.Status, answer.Body)
		}
	}
	other.page("/console/runs")
	for _, action := range []string{"cancel", "rerun"} {
		if answer := other.post("/console/runs/" + id + "/" + action); answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", action, answer.Status)
		}
	}
	if h.Run(t, id).Cancel != nil {
		t.Error("got a cancel request of another tenant")
	}
}

func TestRunIsCancelledAndRepeated(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.program(t, `{"image":"a","command":["x"]}`)
	b := h.signedIn(t, ownerToken)
	b.page("/console/runs/"+id, "Why", "sortie explain "+id, `action="../runs/`+id+`/cancel"`)
	answer := b.post("/console/runs/"+id+"/cancel", "reason", "wrong <b>input</b>")
	if to := answer.Header.Get("Location"); answer.Status != http.StatusSeeOther || to != "/console/runs/"+id+"?done=cancel" {
		t.Fatalf("got %d %s to %q, want the run", answer.Status, answer.Body, to)
	}
	if r := h.Run(t, id); r.State != run.Cancelled || r.Cancel.Reason != "wrong <b>input</b>" {
		t.Errorf("got %s with %+v, want Cancelled", r.State, r.Cancel)
	}
	text := b.page("/console/runs/"+id+"?done=cancel", "The cancel request is recorded", "wrong &lt;b&gt;input&lt;/b&gt;", "Cancelled", `/rerun"`)
	key := regexp.MustCompile(`name="key" value="([^"]+)"`).FindStringSubmatch(text)
	var to string
	for range 2 { // a form that is sent twice
		answer = b.post("/console/runs/"+id+"/rerun", "key", key[1])
		if answer.Status != http.StatusSeeOther || to != "" && answer.Header.Get("Location") != to {
			t.Fatalf("got %d %s to %q, want the new run", answer.Status, answer.Body, answer.Header.Get("Location"))
		}
		to = answer.Header.Get("Location")
	}
	b.page(to, "This run repeats the earlier one", `href="../runs/`+id+`"`, "Pending")
	if late := b.post("/console/runs/" + id + "/cancel"); late.Header.Get("Location") != "/console/runs/"+id+"?done=cancel" {
		t.Errorf("got %d to %q, want that the run was cancelled before", late.Status, late.Header.Get("Location"))
	}
}

// hostile are texts that would do something if a page did not escape them.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `javascript:alert(1)`, "\u202egnp.exe", "a\u0000b\u0007", "\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07", `{{.Form}}`, strings.Repeat("w", 200_000),
}

func TestHostileTextsAreOnlyShown(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	for _, text := range hostile {
		quoted := fmt.Sprintf("%q", text)
		body := `{"image":"exec:/bin/true","command":[` + jsonText(text) + `],"env":{"A":` + jsonText(text) + `}}`
		answer := h.Call(t, http.MethodPost, "/v1/runs", body, "Authorization", "Bearer "+ownerToken)
		if answer.Status != http.StatusAccepted {
			continue // the API refuses it
		}
		var id string
		if _, err := fmt.Sscanf(answer.Body, `{"taskId":%q`, &id); err != nil {
			t.Fatal(err)
		}
		b.page("/console/runs/" + id)
		b.post("/console/runs/"+id+"/cancel", "reason", text)
		for _, path := range []string{"/console/runs", "/console/runs/" + id} {
			page := b.page(path)
			for _, never := range []string{"<script>alert", "<img", `href="javascript:`, "\u202e", "\x00", "\x1b"} {
				if strings.Contains(page, never) {
					t.Errorf("%.40s: %s: got %q in the page", quoted, path, never)
				}
			}
			if len(page) > 200_000 {
				t.Errorf("%.40s: %s: got a page of %d bytes", quoted, path, len(page))
			}
		}
	}
	for _, text := range hostile[:4] {
		for _, path := range []string{"/console/runs?jobId=", "/console/runs?state=", "/console/runs?faultCode=", "/console/runs/", "/console/sign-in?next=", "/console/ticket?ticket=", "/console/", "/console/runs?done="} {
			if page := b.get(path + url.QueryEscape(text)); strings.Contains(page.Body, "<script>alert") || strings.Contains(page.Body, "<img") || strings.Contains(page.Body, "\u202e") {
				t.Errorf("%s%s: got the text in the page as it is", path, text)
			}
		}
	}
}

// jsonText returns a JSON string with escapes for what is not ASCII.
func jsonText(text string) string {
	var b strings.Builder
	for _, c := range text {
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			b.WriteRune(c)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, c)
	}
	return `"` + b.String() + `"`
}
