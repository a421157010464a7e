//go:build browser

package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// created returns the id of the run whose page is open.
func (b *tab) created() string {
	b.t.Helper()
	id, _, _ := strings.Cut(strings.TrimPrefix(b.path(), "runs/"), "?")
	if !strings.HasPrefix(b.path(), "runs/") || id == "" {
		b.t.Fatalf("got %s, want the page of a run", b.path())
	}
	return id
}

// get reads an object of the API.
func (s *server) get(t *testing.T, path string) object {
	t.Helper()
	answer, err := s.call(http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestSubmitWithParameters(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	b.open("jobs/nightly-report")
	b.fill(`input[name="parameter.REGION"]`, "south")
	b.press(click(`//section[@id="run"]//button`))
	id := b.created()
	if err := w.await(id, "Completed"); err != nil {
		t.Fatal(err)
	}
	b.open("runs/" + id)
	b.has("reading orders of south", "south\t1204", "Completed")
}

func TestRunFromTheList(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	b.open("jobs")
	b.press(click(`//button[@aria-label="Run nightly-report now"]`))
	if err := w.await(b.created(), "Completed"); err != nil {
		t.Fatal(err)
	}
}

func TestCancelAndRerun(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	id, gate := gated(t, w.server, waiting)
	b.open("runs/" + id)
	b.press(button("Cancel"))
	b.has("The cancel request is recorded")
	if err := w.await(id, "Cancelled"); err != nil {
		t.Fatal(err)
	}
	b.awaits("the end of the run", `document.querySelector("#head .badge").innerText.trim() === "Cancelled"`)
	write(t, gate)
	b.press(button("Rerun"))
	b.has("This run repeats the earlier one", "Repeats", id)
	again := b.created()
	if err := w.await(again, "Completed"); err != nil {
		t.Fatal(err)
	}
	if got := w.get(t, "/v1/runs/"+again)["retryOf"]; got != id {
		t.Errorf("got retryOf %v, want %s", got, id)
	}
}

func TestPauseAndEditAJob(t *testing.T) {
	w := shared(t)
	id := "edited"
	definition := object{"id": id, "image": "exec:/bin/echo", "command": []string{"one"}, "schedule": "0 4 * * *"}
	if _, err := w.call(http.MethodPut, "/v1/jobs/"+id, definition); err != nil {
		t.Fatal(err)
	}
	b := signedIn(t, w.server)
	b.permit("422") // of the refused document
	b.open("jobs/" + id)
	b.press(button("Pause"))
	b.has("The schedule of the job is paused")
	if got := w.get(t, "/v1/jobs/"+id)["paused"]; got != true {
		t.Errorf("got paused %v, want true", got)
	}
	b.press(button("Resume"))
	b.has("The schedule of the job is resumed")

	b.open("jobs/" + id + "/document")
	text := value[string](b, `document.querySelector("textarea[name=document]").value`)
	b.fill("textarea[name=document]", strings.Replace(text, "0 4 * * *", "0 99 * * *", 1))
	b.press(button("Check"))
	b.has("The document is refused")
	b.fill("textarea[name=document]", strings.Replace(text, "0 4 * * *", "30 5 * * *", 1))
	b.press(button("Check"))
	b.has("The document is valid", "30 5 * * *")
	if got := w.get(t, "/v1/jobs/"+id)["schedule"]; got != "0 4 * * *" {
		t.Errorf("got the schedule %v after a check, want no change", got)
	}
	b.press(button("Apply"))
	b.has("The job is stored")
	if got := w.get(t, "/v1/jobs/"+id)["schedule"]; got != "30 5 * * *" {
		t.Errorf("got the schedule %v, want 30 5 * * *", got)
	}
}

func TestCreateAJob(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	b.open("new-job")
	b.fill("textarea[name=document]", "id: from-console\nimage: exec:/bin/echo\ncommand: [hello]\n")
	b.press(button("Check"))
	b.has("The document is valid")
	b.press(button("Apply"))
	b.has("The job is stored")
	if got := w.get(t, "/v1/jobs/from-console")["image"]; got != "exec:/bin/echo" {
		t.Errorf("got the image %v, want exec:/bin/echo", got)
	}
}

func TestPoolActions(t *testing.T) {
	w := shared(t)
	if _, err := w.cli("pools", "set", "spare", "--limit", "2"); err != nil {
		t.Fatal(err)
	}
	b := signedIn(t, w.server)
	b.open("pools/spare")
	b.fill("input[name=limit]", "3")
	b.press(button("Set limits"))
	b.has("The limits are set", "of 3")
	b.press(button("Drain"))
	b.has("The pool drains")
	b.press(button("Resume"))
	b.has("The pool admits runs again")
}

func TestWebhookActions(t *testing.T) {
	w := shared(t)
	received := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case received <- r.Header.Get("X-Orchestrator-Signature"):
		default:
		}
	}))
	t.Cleanup(receiver.Close)
	b := signedIn(t, w.server)
	b.open("webhooks")
	b.do(click(`//summary[@id="h-new"]`))
	b.fill("input[name=url]", receiver.URL+"/hook")
	b.fill("input[name=eventTypes]", "job.completed")
	b.press(button("Add the webhook"))
	b.has("Copy it now")
	b.press(click(`//main//a[starts-with(normalize-space(), "To the webhook")]`))
	page := b.path()
	b.press(button("Send a test"))
	b.has("Accepted")
	select {
	case signature := <-received:
		if !strings.HasPrefix(signature, "sha256=") {
			t.Errorf("got the signature %q, want sha256=", signature)
		}
	case <-time.After(limit):
		t.Fatal("the receiver got no test")
	}
	b.open(page)
	b.press(button("Pause"))
	b.has("The webhook is paused")
	b.press(button("Resume"))
	b.has("The webhook is active")
	b.press(button("New secret"))
	b.has("Copy it now")

	if _, err := w.shell("true", nil); err != nil {
		t.Fatal(err)
	}
	select {
	case <-received:
	case <-time.After(limit):
		t.Fatal("the receiver got no event")
	}
	err := wait("the delivery in the list", func() (bool, error) {
		b.open(page)
		return strings.Contains(b.text("main"), "Redeliver"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.press(click(`(//main//button[normalize-space()="Redeliver"])[1]`))
	b.has("The events are sent again")
	select {
	case <-received:
	case <-time.After(limit):
		t.Fatal("the receiver got no event again")
	}
	b.do(click(`//summary[normalize-space()="Delete the webhook"]`))
	b.fill("input[name=confirm]", strings.TrimPrefix(page, "webhooks/"))
	b.press(button("Delete with its log"))
	b.has("The webhook is deleted")
}

func TestPlayground(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	b.open("inference/playground")
	b.fill("textarea[name=prompt]", "Tell a story")
	b.fill("input[name=max_tokens]", "25")
	b.press(button("Ask"))
	b.awaits("the end of the answer", `document.querySelector("[data-state=good]")`)
	b.has("25 tokens from", "tokens a second")
	if text := b.text("[data-text]"); text == "" {
		t.Error("got no answer")
	}
	b.fill("input[name=max_tokens]", "4000")
	b.press(button("Ask"))
	b.awaits("the first tokens", `document.querySelector("[data-text]").innerText.length > 20`)
	b.do(button("Cancel"))
	b.awaits("the end of the answer", `document.querySelector("[data-state]")`)
	if text := b.text("[data-text]"); len(text) < 20 {
		t.Errorf("got %q after the cancellation, want the text so far", text)
	}
}

// TestSignatures verifies an event and a range of the stream in the browser.
func TestSignatures(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	b.open("events/1")
	b.awaits("the verification of the event", `document.querySelector(".verdict.good, .verdict.bad")`)
	b.has("The signature is valid")
	err := wait("a checkpoint of the stream", func() (bool, error) {
		b.open("events/proof")
		b.awaits("the verification of the range", `document.querySelector(".verdict.good, .verdict.bad")`)
		return value[bool](b, `Boolean(document.querySelector(".verdict.good"))`), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.has("are complete and unchanged")
}

func TestSearchFindsEachKind(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	event := fmt.Sprint(w.get(t, "/v1/events?after=earliest&limit=1")["events"].([]any)[0].(map[string]any)["eventId"]) //nolint:forcetypeassert // the document of the API
	for _, each := range []struct{ text, found string }{
		{w.completed, "Run"}, {w.export, "Run"}, {"nightly-report", "Job"}, {"report", "nightly-report"}, {event, "Signature"}, {w.webhook, "Deliveries"}, {"/sortie", "Webhook"},
	} {
		b.open("overview")
		b.fill(".find input", each.text)
		b.press(keys("\r"))
		b.has(each.found)
	}
}
