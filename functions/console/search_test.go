package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/events/eventtype"
)

func TestSearchFindsByID(t *testing.T) {
	t.Parallel()
	h, w := setupEvents(t)
	add(t, w, eventtype.Accepted, eventtype.Failed)
	id := h.program(t, `{"image":"a"}`)
	b := h.signedIn(t, ownerToken)
	b.page("/console/runs", `action="./search"`)
	for query, want := range map[string]string{
		id: "/console/runs/" + id, "  " + id + " ": "/console/runs/" + id, "2": "/console/events/2", w.Cursor().String(): "/console/events/" + w.Cursor().String(),
		"urn:orch:event:" + strings.Repeat("0", 25) + "1": "/console/events/" + strings.TrimSuffix(w.Cursor().String(), "2") + "1",
	} {
		if answer := b.get("/console/search?q=" + url.QueryEscape(query)); answer.Status != http.StatusSeeOther || answer.Header.Get("Location") != want {
			t.Errorf("%q: got %d to %q, want %s", query, answer.Status, answer.Header.Get("Location"), want)
		}
	}
	for _, query := range append([]string{"", "3", "other-1", "urn:orch:event:none", "../../v1", "whk_none", "a/b"}, hostile...) {
		answer := b.get("/console/search?q=" + url.QueryEscape(query))
		if len(query) > 10_000 && answer.Status >= 400 && answer.Status < 500 {
			continue // the address is too long
		}
		if answer.Status != http.StatusOK || strings.Contains(answer.Body, "<script>alert") || strings.Contains(answer.Body, "<img") || strings.Contains(answer.Body, "\u202e") {
			t.Errorf("%.60q: got %d %s, want that nothing is found", query, answer.Status, mainPart(answer.Body))
		}
	}
	for _, token := range []string{readerToken, otherToken} {
		if answer := h.signedIn(t, token).get("/console/search?q=2"); answer.Status != http.StatusOK || !strings.Contains(answer.Body, "Nothing has this id") {
			t.Errorf("%s: got %d, want no event", token, answer.Status)
		}
	}
	if answer := h.signedIn(t, otherToken).get("/console/search?q=" + id); answer.Status != http.StatusOK {
		t.Errorf("got %d for a run of another tenant, want nothing", answer.Status)
	}
}

func TestSearchFindsWebhooksByName(t *testing.T) {
	t.Parallel()
	s := setupWebhooks(t)
	id := s.create(t, "Ops <b>channel</b>")
	b := s.signedIn(t, ownerToken)
	b.page("/console/search?q=ops", "Ops &lt;b&gt;channel", `href="./webhooks/`+id+`"`)
	b.page("/console/search?q=nothing", "Nothing has this id")
	if answer := b.get("/console/search?q=" + id); answer.Header.Get("Location") != "/console/webhooks/"+id {
		t.Errorf("got %d to %q, want the webhook", answer.Status, answer.Header.Get("Location"))
	}
	if text := s.signedIn(t, otherToken).page("/console/search?q=ops"); strings.Contains(text, id) {
		t.Error("got a webhook of another tenant")
	}
}
