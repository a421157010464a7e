package delivery_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	systemclock "github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// pass lets virtual time pass.
func pass(d time.Duration) { _ = systemclock.Sleep(context.Background(), systemclock.System{}, d) }

// slowBus takes a second for each call.
type slowBus struct {
	mu        sync.Mutex
	published map[int64]int
}

func (b *slowBus) Publish(_ context.Context, list []port.PublishedEvent) ([]int, error) {
	pass(time.Second)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range list {
		b.published[e.Position]++
	}
	return nil, nil
}

// TestOneProcessPublishesForAll lets two processes publish the events of a tenant at the same
// time. When both have lost a race, one of them publishes what the other leaves to it.
func TestOneProcessPublishesForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clk, log, keys := systemclock.System{}, slog.New(slog.DiscardHandler), fake.NewEventKeys(nil)
		feed := fake.NewFeed(clk, time.Hour, nil, func(err error) { t.Error(err) })
		publisher, seats := &slowBus{published: map[int64]int{}}, fake.NewSeats(clk, nil)
		relay := delivery.NewRelay(feed, keys, delivery.NoTurns{}, clk, log, delivery.Published{Events: func(c port.Change) (all []events.Envelope, err error) {
			return []events.Envelope{relayEvent("acme", c.Events[0].ID, c.Events[0].At)}, nil
		}}, series.Discard)
		bus := func() *delivery.Bus {
			turns := delivery.NewTurns(nil, seats, clk, log, func() float64 { return 0.5 })
			return delivery.NewBus(feed, publisher, keys, turns, log)
		}
		one, other := bus(), bus()
		appended := 0
		appendOne := func() {
			appended++
			id := run.EventID(time.Now(), fmt.Sprint(appended))
			done := relay.Relay(t.Context(), []delivery.Change{{ID: id, Change: port.Change{
				Run: run.Run{Tenant: "acme"}, Events: []run.Event{{ID: id, At: time.Now()}},
			}}})
			if done.Events != 1 {
				t.Fatalf("got %+v, want an event", done)
			}
		}
		publish := func(b *delivery.Bus) {
			if err := b.Publish(t.Context(), "acme"); err != nil {
				t.Error(err)
			}
		}
		for round := range 8 {
			first, second := one, other
			if round%2 > 0 {
				first, second = other, one
			}
			var both sync.WaitGroup
			appendOne()
			both.Go(func() { publish(first) })
			pass(time.Second / 2) // it publishes the first
			appendOne()
			both.Go(func() { publish(second) })
			both.Wait()
		}
		if got := slices.Sorted(maps.Keys(publisher.published)); len(got) != appended {
			t.Errorf("the bus has the positions %v, want 1 to %d", got, appended)
		}
		for position, n := range publisher.published {
			if position > 4 && n > 1 {
				t.Errorf("the bus has %d messages of position %d, want one", n, position)
			}
		}
	})
}
