package delivery_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/port"
)

func (s *relayStage) bus(publisher port.Publisher) *delivery.Bus {
	return delivery.NewBus(s.feed, publisher, s.keys, delivery.NoTurns{}, slog.New(slog.NewTextHandler(&s.log, nil)))
}

// positions returns the positions of the published events, in order.
func positions(p *fake.Publisher) (all []int64) {
	for _, e := range p.Events() {
		all = append(all, e.Position)
	}
	return all
}

// TestBusGetsTheSignedEventBesideItsFields verifies the event, and that the fields for rules
// equal the signed ones (EE-5.7).
func TestBusGetsTheSignedEventBesideItsFields(t *testing.T) {
	t.Parallel()
	s, publisher := newRelayStage(t, nil), fake.NewPublisher(nil)
	s.wantRelayed(s.changes("acme", 1, 1))
	if err := s.bus(publisher).Publish(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(publisher.Events()[0])
	if err != nil {
		t.Fatal(err)
	}
	signed, _, err := s.published().OpenMessage(t.Context(), document)
	if err != nil || signed.TenantID != "acme" {
		t.Fatalf("got %+v, %v, want the event", signed, err)
	}
	if n := signed.Notifier; n == nil || n.Channel != "orch.jobs" || n.Delivery != events.DeliveryDSSE {
		t.Errorf("got notifier %+v, want orch.jobs and dsse", n)
	}
}

// TestBusGetsEachEventDespiteFailures fails each call of the feed and of the publisher,
// before and after it is applied. The bus gets each event, at least once.
func TestBusGetsEachEventDespiteFailures(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		s, publisher := newRelayStage(t, fake.Seeded(seed, 0.2)), fake.NewPublisher(fake.Seeded(seed, 0.03))
		all := s.changes("acme", 1, 230)
		var got []int64
		for pass := 0; pass < 60 && len(got) < len(all); pass++ {
			_ = s.relay.Relay(t.Context(), all)
			_ = s.bus(publisher).Publish(t.Context(), "acme")
			got = positions(publisher)
			slices.Sort(got)
			got = slices.Compact(got)
		}
		if len(got) != len(all) {
			t.Fatalf("seed %d: got %d events on the bus, want %d", seed, len(got), len(all))
		}
	}
}

// TestRefusedEventDoesNotHoldUpTheBus publishes an event that the bus rejects permanently.
func TestRefusedEventDoesNotHoldUpTheBus(t *testing.T) {
	t.Parallel()
	s, publisher := newRelayStage(t, nil), fake.NewPublisher(nil)
	s.wantRelayed(s.changes("acme", 1, 1))
	head, err := s.feed.Append(t.Context(), port.EventStream("acme"), port.Batch{After: 1, Records: []port.FeedRecord{
		{ID: "large", At: s.clock.Now(), Data: []byte(fmt.Sprintf("%q", "not signed"))},
	}})
	if err != nil || head.Newest != 2 {
		t.Fatal(err)
	}
	if err := s.bus(publisher).Publish(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if got := positions(publisher); !slices.Equal(got, []int64{1}) {
		t.Errorf("got positions %v, want 1", got)
	}
	if at, err := s.feed.Cursor(t.Context(), port.EventStream("acme"), "bus/"+head.Epoch); err != nil || at != 2 {
		t.Errorf("got cursor %d, %v, want 2", at, err)
	}
}

// TestBusReadsAStreamThatBeganAgain checks that a cursor of an earlier epoch does not apply to
// a new epoch.
func TestBusReadsAStreamThatBeganAgain(t *testing.T) {
	t.Parallel()
	s, publisher := newRelayStage(t, nil), fake.NewPublisher(nil)
	for round := range 2 {
		s.wantRelayed(s.changes("acme", 10*round, 3))
		if err := s.bus(publisher).Publish(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		s.feed.Lose(port.EventStream("acme"))
		s.clock.Advance(time.Minute)
	}
	if got := positions(publisher); !slices.Equal(got, []int64{1, 2, 3, 1, 2, 3}) {
		t.Errorf("got positions %v, want 1 to 3 twice", got)
	}
}

// TestBusGetsASignedEvent publishes events that are stored without DSSE envelopes. The bus
// signs them, with the same result as a relay that stores signed events.
func TestBusGetsASignedEvent(t *testing.T) {
	t.Parallel()
	var published [2][]port.PublishedEvent
	for i, bare := range []bool{true, false} {
		s, publisher := newRelayStage(t, nil), fake.NewPublisher(nil)
		s.bare = bare
		s.relayTo(s.feed)
		s.relay.Relay(t.Context(), s.changes("acme", 1, 3))
		records, err := s.feed.Read(t.Context(), port.EventStream("acme"), 0, 10)
		if err != nil || len(records) != 3 || events.Bare(records[0].Data) != bare {
			t.Fatalf("got %d records, %v, bare %v, want 3, %v", len(records), err, events.Bare(records[0].Data), bare)
		}
		if err := s.bus(publisher).Publish(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		published[i] = publisher.Events()
		for _, e := range published[i] {
			document, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.published().OpenMessage(t.Context(), document); err != nil {
				t.Error(err)
			}
		}
	}
	for i, e := range published[0] {
		if string(e.Data) != string(published[1][i].Data) {
			t.Errorf("got %s, want %s", e.Data, published[1][i].Data)
		}
	}
}

// TestBusWaitsForTheKey: no event is skipped while the key cannot be read.
func TestBusWaitsForTheKey(t *testing.T) {
	t.Parallel()
	s, publisher := newRelayStage(t, nil), fake.NewPublisher(nil)
	s.bare = true
	s.relayTo(s.feed)
	s.relay.Relay(t.Context(), s.changes("acme", 1, 3))
	lost := true
	s.keys = fake.NewEventKeys(func(fake.Call) fake.Fate {
		if lost {
			return fake.Lost
		}
		return fake.Applied
	})
	bus := s.bus(publisher)
	if err := bus.Publish(t.Context(), "acme"); err == nil || len(publisher.Events()) > 0 {
		t.Errorf("got %v and %d events, want an error and none", err, len(publisher.Events()))
	}
	lost = false
	if err := bus.Publish(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
	if got := positions(publisher); !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("got positions %v, want 1 to 3", got)
	}
}
