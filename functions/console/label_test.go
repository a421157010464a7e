package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/label"
)

func TestSelectedRunsGetLabels(t *testing.T) {
	t.Parallel()
	h := setup(t)
	first, second := h.program(t, `{"image":"one","labels":{"team":"data","old":"1"}}`), h.program(t, `{"image":"two","labels":{"team":"data"}}`)
	other := h.program(t, `{"image":"three"}`)
	b := h.signedIn(t, ownerToken)
	b.page("/console/runs?label=team%3Ddata", "label: <b><bdi>team=data", `name="label" value="team=data"`, "old=1,team=data", "sortie runs --selector team=data", "Label…")
	preview := b.choose("label", url.Values{"all": {"true"}, "filter": {"label=team%3Ddata"}})
	if text := b.page(preview, "Label 2 runs", "Nothing has changed yet", first, second, "sortie runs label KEY=VALUE --dry-run --selector team=data"); strings.Contains(text, other) {
		t.Error("got another run in the preview")
	}
	for labels, want := range map[string]string{"": "no labels", "a b": "malformed label", "<b>=1": "malformed label &#34;&lt;b&gt;=1&#34;", "a=<b>": "malformed label"} {
		if answer := b.post(preview+"/apply", "labels", labels); answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, want) || strings.Contains(answer.Body, "<b>=1") {
			t.Errorf("%q: got %d %s, want 400", labels, answer.Status, mainPart(answer.Body))
		}
	}
	reader := h.signedIn(t, readerToken)
	reader.page(preview)
	if answer := reader.post(preview+"/apply", "labels", "a=1"); answer.Status != http.StatusForbidden {
		t.Errorf("got %d for a reader, want 403", answer.Status)
	}
	if answer := b.submit(preview+"/apply", b.form, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, "labels", "a=1"); answer.Status != http.StatusForbidden {
		t.Errorf("got %d for a foreign origin, want 403", answer.Status)
	}
	if got := label.Text(h.Run(t, first).Labels); got != "old=1,team=data" {
		t.Fatalf("got labels %s, want no change", got)
	}
	b.page(preview)
	b.post(preview+"/apply", "labels", "owner=ana, old-")
	b.page(preview, "changed", "old-,owner=ana", "by owner", "sortie runs label old- owner=ana --dry-run")
	for id, want := range map[string]string{first: "owner=ana,team=data", second: "owner=ana,team=data", other: ""} {
		if got := label.Text(h.Run(t, id).Labels); got != want {
			t.Errorf("got labels %s, want %s", got, want)
		}
	}
	b.page("/console/runs/"+first, `href="../runs?label=owner%3Dana">owner=ana`, "job.labels_changed")
	if answer := b.get("/console/runs?label=%3Cb%3E"); answer.Status != http.StatusBadRequest || strings.Contains(answer.Body, "<b>") {
		t.Errorf("got %d %s for a malformed selector, want 400", answer.Status, mainPart(answer.Body))
	}
}

func TestJobsAreListedByLabels(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for id, labels := range map[string]string{"prices": `{"team":"data"}`, "shop": `{"team":"web"}`} {
		if answer := h.Call(t, http.MethodPut, "/v1/jobs/"+id, `{"image":"a","labels":`+labels+`}`, "Authorization", "Bearer "+ownerToken); answer.Status != http.StatusCreated {
			t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
		}
	}
	b := h.signedIn(t, ownerToken)
	text := b.page("/console/jobs?label=team%3Ddata", "prices", "team=data", "sortie jobs list --selector team=data", "label: <b><bdi>team=data")
	if strings.Contains(text, "jobs/shop") {
		t.Error("got another job in the list")
	}
	b.page("/console/jobs/prices", `href="../jobs?label=team%3Ddata">team=data`, `name="labels"`)
	answer := b.post("/console/jobs/prices/run", "labels", "owner=ana team=web")
	id, _, _ := strings.Cut(strings.TrimPrefix(answer.Header.Get("Location"), "/console/runs/"), "?")
	if id, err := url.PathUnescape(id); err != nil || label.Text(h.Run(t, id).Labels) != "owner=ana,team=web" {
		t.Errorf("got %d to %q, want a run with the labels", answer.Status, answer.Header.Get("Location"))
	}
	if answer := b.post("/console/jobs/prices/run", "labels", "<b>"); answer.Status != http.StatusBadRequest {
		t.Errorf("got %d for a malformed label, want 400", answer.Status)
	}
	b.post("/console/runs/" + id + "/cancel")
	b.page("/console/runs/"+id+"/changes", `name="labels"`)
	checked := b.post("/console/runs/"+id+"/changes", "labels", "team-", "step", "check", "priority", "normal")
	if !strings.Contains(checked.Body, "owner=ana,team=web") || !strings.Contains(checked.Body, "sortie retry") || !strings.Contains(checked.Body, "--label team-") {
		t.Errorf("got %d %s, want the changes", checked.Status, mainPart(checked.Body))
	}
}
