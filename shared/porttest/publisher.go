package porttest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Delivered is one event as a subscriber gets it.
type Delivered struct {
	Type   string
	Detail json.RawMessage
}

// PublisherHarness is an adapter with a subscriber.
type PublisherHarness struct {
	Publisher port.Publisher
	// Listen waits for what the subscriber hears next, in any order; false
	// where ctx ends first.
	Listen func(ctx context.Context) ([]Delivered, bool)
	// TooLarge is the size in bytes of a detail that can never be told.
	TooLarge int
}

// Publisher is the conformance suite of port.Publisher. open makes one
// with a subscriber without events.
func Publisher(t *testing.T, open func(t *testing.T) PublisherHarness) {
	t.Helper()
	t.Run("what is published is heard", func(t *testing.T) {
		t.Parallel()
		p := publisherTest{t, open(t)}
		event := published(1)
		p.publish(event)
		for _, heard := range p.hear(1) {
			if heard.Type != string(event.Event.Type) {
				t.Errorf("its type is %q, want %q", heard.Type, event.Event.Type)
			}
			var got, want any
			if err := json.Unmarshal(heard.Detail, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(event.Detail, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("its detail is another (-want +got):\n%s", diff)
			}
		}
	})
	t.Run("nothing is published at once", func(t *testing.T) {
		t.Parallel()
		publisherTest{t, open(t)}.publish()
	})
	t.Run("as many as there are", func(t *testing.T) {
		t.Parallel()
		p := publisherTest{t, open(t)}
		var events []port.PublishedEvent
		for n := range 47 {
			events = append(events, published(n+1))
		}
		p.publish(events...)
		p.hear(len(events))
	})
	t.Run("large ones too", func(t *testing.T) {
		t.Parallel()
		p := publisherTest{t, open(t)}
		var events []port.PublishedEvent
		for n := range 12 {
			event := published(n + 1)
			event.Detail = padded(event, 60<<10)
			events = append(events, event)
		}
		p.publish(events...)
		p.hear(len(events))
	})
	t.Run("an event may be told again", func(t *testing.T) {
		t.Parallel()
		p := publisherTest{t, open(t)}
		p.publish(published(1))
		p.publish(published(1), published(2))
		p.hear(2)
	})
	t.Run("one that can never be told holds up no other", func(t *testing.T) {
		t.Parallel()
		h := open(t)
		for name, detail := range map[string]json.RawMessage{
			"no JSON": json.RawMessage(`{`), "nothing": nil, "no object": json.RawMessage(`["x"]`),
			"too large": padded(published(3), h.TooLarge),
		} {
			events := []port.PublishedEvent{published(1), published(2), published(3), published(4)}
			events[2].Detail = detail
			failed, err := h.Publisher.Publish(t.Context(), events)
			if diff := cmp.Diff([]int{2}, failed); diff != "" || err == nil {
				t.Errorf("%s: what failed is %v (%v), want the third", name, failed, err)
			}
		}
		publisherTest{t, h}.hear(1, 2, 4)
	})
	t.Run("nothing is told after its time", func(t *testing.T) {
		t.Parallel()
		h := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		failed, err := h.Publisher.Publish(ctx, []port.PublishedEvent{published(1), published(2)})
		if diff := cmp.Diff([]int{0, 1}, failed); diff != "" || err == nil {
			t.Errorf("what failed is %v (%v), want both", failed, err)
		}
	})
}

type publisherTest struct {
	*testing.T
	PublisherHarness
}

// publish publishes all events and fails on an error.
func (p publisherTest) publish(events ...port.PublishedEvent) {
	p.Helper()
	if failed, err := p.Publisher.Publish(p.Context(), events); err != nil || failed != nil {
		p.Fatalf("of %d events, %v failed: %v", len(events), failed, err)
	}
}

// hear waits until the subscriber has heard the events with these numbers, or,
// given one number, of 1 up to it.
func (p publisherTest) hear(numbers ...int) (all []Delivered) {
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
		missing[published(n).Event.ID] = true
	}
	known := len(missing)
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	for len(missing) > 0 {
		some, ok := p.Listen(ctx)
		if !ok {
			p.Fatalf("%d of %d events were never heard", len(missing), known)
		}
		for _, heard := range some {
			var detail struct{ EventID string }
			if err := json.Unmarshal(heard.Detail, &detail); err != nil {
				p.Fatal(err)
			}
			delete(missing, detail.EventID)
		}
		all = append(all, some...)
	}
	return all
}

// published makes the event with a number, always the same.
func published(n int) port.PublishedEvent {
	id := fmt.Sprintf("01K9XVBAQZF9EHDRXGBEAD%04d", n)
	return port.PublishedEvent{
		Tenant: "default", TaskID: "task-1", RunID: "run-1", CorrelationID: "correlation-1",
		Event: run.Event{
			ID: id, Seq: n, Type: run.EventStarted, At: time.Date(2026, 11, 21, 9, 0, n, 0, time.UTC),
			From: run.ContainerCreating, State: run.Running, Attempt: 1,
		},
		Detail: json.RawMessage(fmt.Sprintf(`{"eventId":%q,"seq":%d,"nested":{"text":"é \"quoted\"","list":[1,2.5,null,true]}}`, id, n)),
	}
}

// padded is an event's detail in more than size bytes.
func padded(e port.PublishedEvent, size int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"eventId":%q,"padding":%q}`, e.Event.ID, strings.Repeat("x", size)))
}
