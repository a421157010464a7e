package dynamo_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// middle is a source of constant numbers.
type middle struct{}

func (middle) Float64() float64 { return 0.5 }
func (middle) Hex(n int) string { return strings.Repeat("5a", n) }

// TestDeliveryCosts appends events, wakes their webhook as the relay does, and delivers.
func TestDeliveryCosts(t *testing.T) {
	t.Parallel()
	cfg, now := database(t), clock.NewVirtual(time.Now())
	spent := &meter{API: dynamodb.NewFromConfig(cfg), T: t, table: table(t, cfg)}
	s, err := dynamo.New(spent, dynamo.Config{Table: spent.table, Clock: now, Consumed: spent.consumed, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	feed, err := dynamo.NewFeed(s, dynamo.FeedConfig{Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var received atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		now.Advance(time.Second) // the batches of a turn begin in different seconds
		received.Add(1)
	}))
	t.Cleanup(receiver.Close)
	policy, err := guard.Policy{}.WithRules("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	policy = policy.WithPlainLoopback()
	sender := hook.NewSender(hook.Config{Policy: policy, Clock: now})
	wakes := fake.NewWakes(now, nil)
	subscriptions := delivery.NewSubscriptions(s, feed, wakes, api.WebhookDocument, now, slog.New(slog.DiscardHandler), middle{})
	deliverer := delivery.NewDeliverer(subscriptions, s, sender, middle{}.Float64, "worker", series.Discard)
	dispatch := delivery.NewDispatch(deliverer, delivery.NoTurns{})
	for _, row := range []struct {
		events                  int
		dispatched, most, reads float64 // units of an event
	}{{1, 1, 12, 10}, {10, 0.1, 3, 1.2}} {
		tenant := fmt.Sprint("tenant-", row.events)
		stream := port.EventStream(tenant)
		add := func() {
			head, err := feed.Head(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := feed.Append(t.Context(), stream, port.Batch{After: head.Newest, Records: signedEvents(t, now.Now(), row.events)}); err != nil {
				t.Fatal(err)
			}
		}
		add()
		v, _, _, err := delivery.NewWebhooks(subscriptions, sender, policy).Create(
			t.Context(), port.Identity{Tenant: tenant, Subject: "client"}, delivery.WebhookSettings{URL: receiver.URL + "/"}, "", "")
		if err != nil {
			t.Fatal(err)
		}
		ref := webhook.Ref{Tenant: tenant, ID: v.ID}
		deliver := func() {
			if err := deliverer.Deliver(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
		}
		deliver() // it finds the start of the stream
		if err := dispatch.Dispatch(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		add()
		before := received.Load()
		spent.take()
		if err := dispatch.Dispatch(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		n := float64(row.events)
		dispatched, looked := spent.take()
		deliver()
		wru, rru := spent.take()
		if got := received.Load() - before; got != int64(row.events) {
			t.Errorf("%d events: got %d delivered, want all", row.events, got)
		}
		t.Logf("%d events: the relay's wake %.2f WRU and %.2f RRU, the deliveries %.2f WRU and %.2f RRU", row.events, dispatched, looked, wru, rru)
		if dispatched/n > row.dispatched || wru/n > row.most || (looked+rru)/n > row.reads {
			t.Errorf("%d events: got %.2f and %.2f WRU, %.2f RRU for each, want at most %.2f, %.2f and %.2f",
				row.events, dispatched/n, wru/n, (looked+rru)/n, row.dispatched, row.most, row.reads)
		}
	}
}
