package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// choose sends the form that selects runs. It returns the address of the selection.
func (b *browser) choose(action string, fields url.Values) string {
	b.t.Helper()
	b.page("/console/runs")
	fields.Set("form", b.form)
	fields.Set("action", action)
	answer := b.send(http.MethodPost, "/console/runs/select", fields.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Origin", b.URL, "Sec-Fetch-Site", "same-origin")
	if answer.Status != http.StatusSeeOther || !strings.HasPrefix(answer.Header.Get("Location"), "/console/selections/") {
		b.t.Fatalf("got %d %s to %q, want the selection", answer.Status, mainPart(answer.Body), answer.Header.Get("Location"))
	}
	return answer.Header.Get("Location")
}

// TestOnlyPreviewedRunsAreCancelled selects all runs that match a filter. Between the preview and
// the action, one of them ends, and another one begins to match.
func TestOnlyPreviewedRunsAreCancelled(t *testing.T) {
	t.Parallel()
	h := setup(t)
	first, second, ended := h.program(t, `{"image":"one"}`), h.program(t, `{"image":"two"}`), h.program(t, `{"image":"three"}`)
	export := h.Accept(t)
	b := h.signedIn(t, ownerToken)
	b.page("/console/runs/" + ended)
	b.post("/console/runs/" + ended + "/cancel")
	b.page("/console/runs?kind=program", `name="run" value="`+first, `name="all"`, `Cancel…`, `name="filter" value="kind=program"`)
	preview := b.choose("cancel", url.Values{"all": {"true"}, "filter": {"kind=program"}})
	text := b.page(preview, "Cancel 2 runs", "Nothing has changed yet", first, second, "1 run that cannot be changed", "has ended", ended, "sortie runs cancel --dry-run --kind program")
	if strings.Contains(text, export) || h.Run(t, first).Cancel != nil {
		t.Errorf("got %s in the preview, want only programs, unchanged", export)
	}
	later := h.program(t, `{"image":"four"}`)
	b.post("/console/runs/" + second + "/cancel")
	b.page(preview)
	for range 2 { // a form that is sent twice
		if answer := b.post(preview+"/apply", "reason", "wrong <b>input</b>"); answer.Status != http.StatusSeeOther || answer.Header.Get("Location") != preview {
			t.Fatalf("got %d %s to %q, want the selection", answer.Status, answer.Body, answer.Header.Get("Location"))
		}
	}
	b.page(preview, "cancelled", "wrong &lt;b&gt;input&lt;/b&gt;", "by owner", first, second)
	if r := h.Run(t, first); r.State != run.Cancelled || r.Cancel.Reason != "wrong <b>input</b>" {
		t.Errorf("got %s with %+v, want Cancelled with the reason", r.State, r.Cancel)
	}
	for _, id := range []string{later, export} {
		if r := h.Run(t, id); r.Cancel != nil {
			t.Errorf("got a cancel request for %s, which was not in the preview", id)
		}
	}
}

func TestSelectedRunsAreRepeatedOnce(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	var ids []string
	for n := range 3 {
		ids = append(ids, h.program(t, fmt.Sprintf(`{"image":"image-%d"}`, n)))
	}
	b.page("/console/runs/" + ids[0])
	for _, id := range ids[:2] {
		b.post("/console/runs/" + id + "/cancel")
	}
	preview := b.choose("rerun", url.Values{"run": {ids[0], ids[1], ids[2], "none<b>"}})
	b.page(preview, "Rerun 2 runs", "image-0", "2 runs that cannot be changed", "has not ended", "none&lt;b&gt;", "is unknown, or has expired")
	b.post(preview + "/apply")
	link := regexp.MustCompile(`href="\.\./runs/([^"]+)"`)
	made := map[string]bool{}
	for _, found := range link.FindAllStringSubmatch(b.page(preview, "a new run"), -1) {
		if id, err := url.PathUnescape(found[1]); err == nil && h.knows(t, id) && h.Run(t, id).RetryOf != "" {
			made[h.Run(t, id).RetryOf] = true
		}
	}
	b.post(preview + "/apply")
	if len(made) != 2 || !made[ids[0]] || !made[ids[1]] {
		t.Errorf("got links to runs of %v, want a new run of each of %v", made, ids[:2])
	}
	if rows := strings.Count(b.page("/console/runs"), `data-run="`); rows != 5 {
		t.Errorf("got %d runs, want 3 and 2 that repeat them", rows)
	}
}

// knows reports whether the API has a run.
func (h *home) knows(t *testing.T, id string) bool {
	t.Helper()
	return h.Call(t, http.MethodGet, "/v1/runs/"+url.PathEscape(id), "", "Authorization", "Bearer "+ownerToken).Status == http.StatusOK
}

// TestSelectionHasPages selects more runs than a page and a step of the API have.
func TestSelectionHasPages(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for range 230 {
		h.program(t, `{"image":"a"}`)
	}
	b := h.signedIn(t, ownerToken)
	preview := b.choose("cancel", url.Values{"all": {"true"}, "filter": {"kind=program"}})
	b.page(preview, "Cancel 230 runs", "?from=100", "Next ›")
	b.post(preview + "/apply")
	b.page(preview+"?from=200", "« First", "<dd>230</dd>")
	if text := b.page("/console/runs?state=Pending"); !strings.Contains(text, "No run matches") {
		t.Error("got pending runs, want all cancelled")
	}
}

func TestSelectionsAreProtected(t *testing.T) {
	t.Parallel()
	h := setup(t)
	id := h.program(t, `{"image":"a"}`)
	b := h.signedIn(t, ownerToken)
	preview := b.choose("cancel", url.Values{"run": {id}})
	reader, other := h.signedIn(t, readerToken), h.signedIn(t, otherToken)
	if text := reader.page("/console/runs"); strings.Contains(text, `name="run"`) || strings.Contains(text, "Cancel…") {
		t.Error("got the selection of runs without the scope")
	}
	if text := reader.page(preview, id); strings.Contains(text, "/apply") {
		t.Error("got the action for a reader")
	}
	if answer := other.get(preview); answer.Status != http.StatusNotFound || strings.Contains(answer.Body, id) {
		t.Errorf("got %d %s in another tenant, want 404", answer.Status, answer.Body)
	}
	other.page("/console/runs")
	for name, of := range map[string]struct {
		answer apitest.Answer
		status int
	}{
		"a reader applies":               {reader.post(preview + "/apply"), http.StatusForbidden},
		"a reader selects":               {reader.post("/console/runs/select", "action", "cancel", "run", id), http.StatusForbidden},
		"another tenant applies":         {other.post(preview + "/apply"), http.StatusNotFound},
		"a foreign origin":               {b.submit(preview+"/apply", b.form, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}), http.StatusForbidden},
		"no origin":                      {b.submit(preview+"/apply", b.form, nil), http.StatusForbidden},
		"no token":                       {b.submit(preview+"/apply", "", []string{"Origin", b.URL, "Sec-Fetch-Site", "same-origin"}), http.StatusForbidden},
		"another token":                  {b.submit("/console/runs/select", other.form, []string{"Origin", b.URL, "Sec-Fetch-Site", "same-origin"}, "action", "cancel", "run", id), http.StatusForbidden},
		"no runs":                        {b.post("/console/runs/select", "action", "cancel"), http.StatusBadRequest},
		"no filter":                      {b.post("/console/runs/select", "action", "cancel", "all", "true", "filter", "cursor=a"), http.StatusBadRequest},
		"a bad filter":                   {b.post("/console/runs/select", "action", "cancel", "all", "true", "filter", "state=<b>"), http.StatusBadRequest},
		"an unknown action":              {b.post("/console/runs/select", "action", "delete", "run", id), http.StatusBadRequest},
		"a selection that is unknown":    {b.post("/console/selections/none/apply"), http.StatusNotFound},
		"a page that is not in the list": {b.get(preview + "?from=9"), http.StatusBadRequest},
	} {
		if of.answer.Status != of.status {
			t.Errorf("%s: got %d %s, want %d", name, of.answer.Status, mainPart(of.answer.Body), of.status)
		}
	}
	foreign := other.choose("cancel", url.Values{"run": {id}})
	other.page(foreign, "None of the selected runs can be changed", "is unknown, or has expired")
	other.post(foreign + "/apply")
	if r := h.Run(t, id); r.Cancel != nil {
		t.Errorf("got a cancel request %+v, want none", r.Cancel)
	}
	h.Clock.Advance(8 * 24 * time.Hour)
	if answer := h.signedIn(t, ownerToken).get(preview); answer.Status != http.StatusNotFound {
		t.Errorf("got %d after a week, want 404", answer.Status)
	}
}

// TestSearchContinues searches a text behind more runs than the API reads for a page.
func TestSearchContinues(t *testing.T) {
	t.Parallel()
	h := setup(t)
	old := h.Failure(t, "no manifest <b>")
	for range 1010 {
		h.Clock.Advance(time.Millisecond)
		h.program(t, `{"image":"a"}`)
	}
	b := h.signedIn(t, ownerToken)
	text := b.page("/console/runs?error=No+Manifest", "Searched until <time", "older runs may match", "Continue the search", "error: <b><bdi>No Manifest", "sortie runs --error &#39;No Manifest&#39;")
	if strings.Contains(text, "No run matches") {
		t.Error("got an answer about all runs, want one about a part")
	}
	next := regexp.MustCompile(`href="\./([^"]+)">Continue`).FindStringSubmatch(text)
	b.page("/console/"+strings.ReplaceAll(next[1], "&amp;", "&"), old, "no manifest &lt;b&gt;")
	b.page("/console/runs?error=No+Manifest&createdBefore=2027-01-01T00:00")
	b.page("/console/runs?older=1h&state=Running", `aria-current="true">Long`, "No run matches", "--before ")
}
