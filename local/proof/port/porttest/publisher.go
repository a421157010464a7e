package porttest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/port"
)

// Delivered is an event as a subscriber receives it.
type Delivered struct {
	Type   string
	Detail json.RawMessage
}

// PublisherHarness is an adapter with a subscriber.
type PublisherHarness struct {
	Publisher port.Publisher
	// Listen waits until the subscriber receives events and returns them, in any order. It
	// returns false if ctx ends first.
	Listen func(ctx context.Context) ([]Delivered, bool)
	// TooLarge is the size in bytes of a signed event that is too large to publish.
	TooLarge int
}

// Publisher is the conformance suite of port.Publisher. open returns a harness
// whose subscriber has received no events.
func Publisher(t *testing.T, open func(t *testing.T) PublisherHarness) {
	t.Helper()
	t.Run("delivery", func(t *testing.T) {
		t.Parallel()
		p := publisherTest{t, open(t)}
		event := published(1)
		p.publish(event)
		for _, delivered := range p.receive(1) {
			if delivered.Type != event.Type {
				t.Errorf("got type %q, want %q", delivered.Type, event.Type)
			}
			var got, want any
			if err := json.Unmarshal(delivered.Detail, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(encoded(t, event), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("got another detail (-want +got):\n%s", diff)
			}
		}
	})
	t.Run("no events", func(t *testing.T) {
		t.Parallel()
		publisherTest{t, open(t)}.publish()
	})
	t.Run("many events", func(t *testing.T) {
		t.Parallel()
		p := publisherTest{t, open(t)}
		var list []port.PublishedEvent
		for n := range 47 {
			list = append(list, published(n+1))
		}
		p.publish(list...)
		p.receive(len(list))
	})
	t.Run("large events", func(t *testing.T) {
		t.Parallel()
		p := publisherTest{t, open(t)}
		var list []port.PublishedEvent
		for n := range 12 {
			event := published(n + 1)
			event.Data = padded(60 << 10)
			list = append(list, event)
		}
		p.publish(list...)
		p.receive(len(list))
	})
	t.Run("repeated event", func(t *testing.T) {
		t.Parallel()
		p := publisherTest{t, open(t)}
		p.publish(published(1))
		p.publish(published(1), published(2))
		p.receive(2)
	})
	t.Run("invalid event does not block the others", func(t *testing.T) {
		t.Parallel()
		h := open(t)
		for name, signed := range map[string]json.RawMessage{
			"not JSON": json.RawMessage(`{`), "nothing": nil, "not an object": json.RawMessage(`["x"]`),
			"too large": padded(h.TooLarge),
		} {
			list := []port.PublishedEvent{published(1), published(2), published(3), published(4)}
			list[2].Data = signed
			failed, err := h.Publisher.Publish(t.Context(), list)
			if diff := cmp.Diff([]int{2}, failed); diff != "" || err == nil {
				t.Errorf("%s: got failed %v (%v), want the third event", name, failed, err)
			}
		}
		publisherTest{t, h}.receive(1, 2, 4)
	})
	t.Run("ended context", func(t *testing.T) {
		t.Parallel()
		h := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		failed, err := h.Publisher.Publish(ctx, []port.PublishedEvent{published(1), published(2)})
		if diff := cmp.Diff([]int{0, 1}, failed); diff != "" || err == nil {
			t.Errorf("got failed %v (%v), want both events", failed, err)
		}
	})
}

type publisherTest struct {
	*testing.T
	PublisherHarness
}

// publish publishes the events and fails the test on an error.
func (p publisherTest) publish(list ...port.PublishedEvent) {
	p.Helper()
	if failed, err := p.Publisher.Publish(p.Context(), list); err != nil || failed != nil {
		p.Fatalf("%d events: got failed %v: %v; want success", len(list), failed, err)
	}
}

// receive waits until the subscriber has received the events with the numbers. A single number
// n means the events 1 to n.
func (p publisherTest) receive(numbers ...int) (all []Delivered) {
	p.Helper()
	if len(numbers) == 1 {
		last := numbers[0]
		numbers = nil
		for n := range last {
			numbers = append(numbers, n+1)
		}
	}
	missing := map[string]bool{}
	for _, n := range numbers {
		missing[published(n).ID] = true
	}
	known := len(missing)
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	for len(missing) > 0 {
		some, ok := p.Listen(ctx)
		if !ok {
			p.Fatalf("%d of %d events were not delivered", len(missing), known)
		}
		for _, delivered := range some {
			var detail struct{ ID string }
			if err := json.Unmarshal(delivered.Detail, &detail); err != nil {
				p.Fatal(err)
			}
			delete(missing, detail.ID)
		}
		all = append(all, some...)
	}
	return all
}

// published returns the event with the number, which is the same in every call.
func published(n int) port.PublishedEvent {
	e := events.Envelope{
		EventID: fmt.Sprintf("urn:orch:event:01K9XVBAQZF9EHDRXGBEAD%04d", n), EventType: eventtype.Started,
		OccurredAt: time.Date(2026, 11, 21, 9, 0, n, 0, time.UTC), IdempotencyKey: fmt.Sprint("orch-job.started-task-1-", n),
		CorrelationID: "correlation-1", TenantID: "default", ProjectID: "web", Job: &events.Job{ID: "task-1", RunID: "run-1"},
	}
	signed := []byte(`{"nested":{"text":"é \"quoted\"","list":[1,2.5,null,true]}}`)
	return port.PublishedEvent{Message: events.NewMessage(e, "e1", int64(n), signed), Position: int64(n)}
}

func encoded(t *testing.T, e port.PublishedEvent) []byte {
	t.Helper()
	document, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// padded returns a signed event of more than size bytes.
func padded(size int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"padding":%q}`, strings.Repeat("x", size)))
}
