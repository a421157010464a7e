package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/porttest/fake"
)

func (s *relayStage) bus(publisher port.Publisher) *orchestrator.Bus {
	return orchestrator.NewBus(s.feed, publisher, s.keys, slog.New(slog.NewTextHandler(&s.log, nil)))
}

// positions are those of the published events, in their order.
func positions(p *fake.Publisher) (all []int64) {
	for _, e := range p.Events() {
		all = append(all, e.Position)
	}
	return all
}

// TestBusGetsTheSignedEventBesideItsFields verifies the event, and that the fields for
// rules are those that are signed (EE-5.7).
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
		for range 60 {
			_ = s.relay.Relay(t.Context(), all)
			_ = s.bus(publisher).Publish(t.Context(), "acme")
		}
		got := positions(publisher)
		slices.Sort(got)
		if got = slices.Compact(got); len(got) != len(all) {
			t.Fatalf("seed %d: got %d events on the bus, want %d", seed, len(got), len(all))
		}
	}
}

// TestRefusedEventDoesNotHoldUpTheBus publishes an event that the bus refuses for good.
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
	if err := s.bus(publisher).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := positions(publisher); !slices.Equal(got, []int64{1}) {
		t.Errorf("got positions %v, want 1", got)
	}
	if at, err := s.feed.Cursor(t.Context(), port.EventStream("acme"), "bus/"+head.Epoch); err != nil || at != 2 {
		t.Errorf("got cursor %d, %v, want 2", at, err)
	}
}

// TestBusReadsAStreamThatBeganAgain: the positions of a new epoch are not those of the
// cursor.
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
