package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// setupOverview is like setup, with the operations that the page reads.
func setupOverview(t *testing.T) *home {
	t.Helper()
	return setup(t, func(parts apitest.Parts, _ *app.System) []httpkit.Route {
		return webhooks.Routes(apitest.NewWebhooks(t, parts).Webhooks)
	})
}

func TestOverviewOfNothingSaysWhatToDo(t *testing.T) {
	t.Parallel()
	setupOverview(t).signedIn(t, ownerToken).page("/console/overview", "No run in this time", "sortie export mods")
}

func TestOverviewSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := setupOverview(t)
	b := h.signedIn(t, ownerToken)
	h.Success(t, "a.xml", "application/xml", "<x/>")
	b.page("/console/overview", "Healthy", "no failure among 1 runs", "1 completed")
	h.Clock.Advance(2 * time.Minute)
	id := h.Failure(t, "disk <full>")
	for range 2 {
		h.Admit(t, h.Accept(t))
	}
	waits := h.Accept(t)
	h.Admit(t, waits)
	h.Clock.Advance(3 * time.Minute)
	if answer := h.Call(t, http.MethodPut, "/v1/jobs/nightly", `{"image":"a","schedule":"0 3 * * *"}`, "Authorization", "Bearer "+ownerToken); answer.Status >= 300 {
		t.Fatalf("got %d %s, want the job stored", answer.Status, answer.Body)
	}
	b.page("/console/overview",
		"1 failure</b> since", "3 min ago", "all of <bdi>export mods", "disk &lt;full&gt;", "faultCode=", `href="./runs/`+id+`"`, // the failure
		"a slot of pool default", `href="./runs/`+waits+`"`, // what waits
		"Flakiest and slowest", "Next firings", ">nightly<", "Newest runs", "Pools", // the rest
		"1 failed", "3 under way", "createdAfter=") // the picture
	for _, since := range []string{"1h", "7d"} {
		b.page("/console/overview?since="+since, "1 failure")
	}
	if answer := b.get("/console/overview?since=1y"); answer.Status != http.StatusBadRequest {
		t.Errorf("got %d, want 400", answer.Status)
	}
	h.Clock.Advance(2 * time.Hour)
	if text := b.page("/console/overview?since=1h", "No run in this time"); !strings.Contains(text, "Waiting") {
		t.Error("got no runs that wait for longer than the span")
	}
}

// TestOverviewShowsWhatTheReaderMayRead reads the page with fewer scopes than its parts need, and
// in another tenant.
func TestOverviewShowsWhatTheReaderMayRead(t *testing.T) {
	t.Parallel()
	h := setupOverview(t)
	id := h.Failure(t, "secret text")
	h.signedIn(t, readerToken).page("/console/overview", "secret text")
	if text := h.signedIn(t, otherToken).page("/console/overview"); strings.Contains(text, "secret text") || strings.Contains(text, id) {
		t.Error("got a run of another tenant")
	}
}

// TestOverviewReadsABoundedNumberOfRuns checks that the page does not grow with the table.
func TestOverviewReadsABoundedNumberOfRuns(t *testing.T) {
	t.Parallel()
	h := setupOverview(t)
	for n := range 320 {
		h.program(t, fmt.Sprintf(`{"image":"image-%d"}`, n%3))
	}
	text := h.signedIn(t, ownerToken).page("/console/overview", "The newest 300 runs; there are more", "100+")
	if len(text) > 60_000 {
		t.Errorf("got a page of %d bytes, want at most 60,000", len(text))
	}
}

// TestWaitingRunsAreThoseOfTheirPool has more waiting runs than slots.
func TestWaitingRunsAreThoseOfTheirPool(t *testing.T) {
	t.Parallel()
	h := setupOverview(t)
	for range 7 {
		h.Admit(t, h.Accept(t))
		h.Clock.Advance(time.Second)
	}
	text := h.signedIn(t, ownerToken).page("/console/overview", `href="./pools/default">a slot of pool default</a>`)
	if _, waiting, _ := strings.Cut(text, `id="h-waiting"`); !strings.Contains(waiting[:min(len(waiting), 600)], ">5</td>") {
		t.Errorf("got %s, want five waiting runs", waiting[:min(len(waiting), 600)])
	}
}
