package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/functions/activity"
	functionevents "github.com/sortie-dev/sortie/functions/events"
	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app"
	figures "github.com/sortie-dev/sortie/shared/app/activity"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// setupOverview is like setup, with the operations that the page reads. The events of commits are
// in the stream when a page reads it.
func setupOverview(t *testing.T) *home {
	t.Helper()
	return setup(t, func(parts apitest.Parts, _ *app.System) []httpkit.Route {
		log, chance := slog.New(slog.DiscardHandler), func() float64 { return 0 }
		feed, keys := fake.NewFeed(parts.Clock, 30*24*time.Hour, nil, func(err error) { t.Error(err) }), fake.NewEventKeys(nil)
		relayed := &relayedFeed{Feed: feed, relay: delivery.NewRelay(feed, keys, delivery.NoTurns{}, parts.Clock, log, api.Published("http://127.0.0.1"), series.Discard), outbox: parts.Store.(port.Outbox)}
		streams := stream.New(relayed, parts.Clock, log, chance, stream.Config{Life: time.Hour, Readers: 10})
		return slices.Concat(
			webhooks.Routes(apitest.NewWebhooks(t, parts).Webhooks), activity.Routes(figures.NewTally(parts.Store, relayed, parts.Clock, log)),
			functionevents.Routes(streams, grants.NewTokens(parts.Signer, parts.Clock, nil)),
		)
	})
}

// relayedFeed is a feed that gets the events of all commits before its head is read.
type relayedFeed struct {
	port.Feed
	relay  *delivery.Relay
	outbox port.Outbox
	mu     sync.Mutex
}

func (f *relayedFeed) Head(ctx context.Context, of string) (port.Head, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.relay.Drain(ctx, f.outbox, func(c port.StoredChange) delivery.Change {
		change := delivery.Change{ID: c.ID, At: c.At}
		change.Change, change.Err = sqlite.ChangeOf(c.Record)
		return change
	}, nil)
	if err != nil {
		return port.Head{}, err
	}
	return f.Feed.Head(ctx, of)
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
		"1 failure</b> since", "3 min ago", "all of <bdi>exports", "disk &lt;full&gt;", "faultCode=", `href="./runs/`+id+`"`, // the failure
		"a slot of pool default", `href="./runs/`+waits+`"`, // what waits
		"Flakiest", "50 %", "Next firings", ">nightly<", "Newest runs", "Newest events", "job.failed", "Pools", // the rest
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

// TestOverviewCountsAllRuns has more runs than a page of a list, and jobs with the same share of
// failures.
func TestOverviewCountsAllRuns(t *testing.T) {
	t.Parallel()
	h := setupOverview(t)
	for n := range 320 {
		h.program(t, fmt.Sprintf(`{"image":"image-%d"}`, n%3))
	}
	text := h.signedIn(t, ownerToken).page("/console/overview", "no failure among 320 runs", "320 under way", "100+")
	if len(text) > 60_000 {
		t.Errorf("got a page of %d bytes, want at most 60,000", len(text))
	}
}

// TestOverviewSaysThatItsFiguresArePartial has more events than a request counts.
func TestOverviewSaysThatItsFiguresArePartial(t *testing.T) {
	t.Parallel()
	h := setup(t, func(parts apitest.Parts, _ *app.System) []httpkit.Route {
		log := slog.New(slog.DiscardHandler)
		feed := fake.NewFeed(parts.Clock, time.Hour, nil, func(err error) { t.Error(err) })
		w, err := streamtest.New(feed, apitest.Tenant, parts.Clock)
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			if err := w.Add(t.Context(), false, slices.Repeat([]eventtype.Type{eventtype.Accepted}, 100)...); err != nil {
				t.Fatal(err)
			}
		}
		streams := stream.New(feed, parts.Clock, log, func() float64 { return 0 }, stream.Config{Life: time.Hour, Readers: 10})
		return slices.Concat(
			webhooks.Routes(apitest.NewWebhooks(t, parts).Webhooks), activity.Routes(figures.NewTally(parts.Store, feed, parts.Clock, log)),
			functionevents.Routes(streams, grants.NewTokens(parts.Signer, parts.Clock, nil)),
		)
	})
	h.program(t, `{"image":"a"}`)
	h.Clock.Advance(time.Minute)
	h.signedIn(t, ownerToken).page("/console/overview", "Partial figures: they count the events until")
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
