package eventbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/eventbridge"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// entry is an entry of PutEvents.
type entry struct {
	EventBusName, Source, DetailType, Detail string
	Time                                     float64
	Resources                                []string
}

// bus is an event bus with the limits of the API's documentation and a
// subscriber.
type bus struct {
	mu       sync.Mutex
	requests [][]entry
	unheard  []porttest.Delivered
	signal   chan struct{}
	// refuses returns the error code of a refused entry.
	refuses func(entry) string
	// fails are the errors of the next requests.
	fails []awstest.Refusal
}

func newBus() *bus {
	return &bus{signal: make(chan struct{}, 1), refuses: func(entry) string { return "" }}
}

func (b *bus) put(input json.RawMessage) (any, error) {
	var request struct{ Entries []entry }
	if err := json.Unmarshal(input, &request); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, request.Entries)
	if len(b.fails) > 0 {
		refusal := b.fails[0]
		b.fails = b.fails[1:]
		return nil, refusal
	}
	size := 0
	for _, e := range request.Entries {
		size += 14 + len(e.Source) + len(e.DetailType) + len(e.Detail) + len(strings.Join(e.Resources, ""))
	}
	if n := len(request.Entries); n < 1 || n > 10 || n > 1 && size > 256<<10 || size >= 1_000_000 {
		return nil, awstest.Refusal{Code: "ValidationException", Message: fmt.Sprintf("%d entries, %d bytes", n, size)}
	}
	var answers []map[string]string
	failed := 0
	for i, e := range request.Entries {
		if code := b.refuses(e); code != "" {
			failed++
			answers = append(answers, map[string]string{"ErrorCode": code, "ErrorMessage": "no"})
			continue
		}
		answers = append(answers, map[string]string{"EventId": fmt.Sprint(len(b.requests), "-", i)})
		b.unheard = append(b.unheard, porttest.Delivered{Type: e.DetailType, Detail: json.RawMessage(e.Detail)})
	}
	select {
	case b.signal <- struct{}{}:
	default:
	}
	return map[string]any{"FailedEntryCount": failed, "Entries": answers}, nil
}

func (b *bus) listen(ctx context.Context) ([]porttest.Delivered, bool) {
	for {
		b.mu.Lock()
		heard := b.unheard
		b.unheard = nil
		b.mu.Unlock()
		if len(heard) > 0 {
			return heard, true
		}
		select {
		case <-b.signal:
		case <-ctx.Done():
			return nil, false
		}
	}
}

func setup(t *testing.T) (*bus, *eventbridge.Publisher) {
	t.Helper()
	b := newBus()
	publisher, err := eventbridge.New(awstest.Serve(t, map[string]awstest.Call{"PutEvents": b.put}), "a-bus")
	if err != nil {
		t.Fatal(err)
	}
	return b, publisher
}

func TestPublisher(t *testing.T) {
	t.Parallel()
	porttest.Publisher(t, func(t *testing.T) porttest.PublisherHarness {
		t.Helper()
		b, publisher := setup(t)
		return porttest.PublisherHarness{Publisher: publisher, Listen: b.listen, TooLarge: 1_000_000}
	})
}

func list(count int) []port.PublishedEvent {
	list := make([]port.PublishedEvent, count)
	for i := range list {
		list[i].Message = events.NewMessage(events.Envelope{
			EventID: fmt.Sprint("event-", i), EventType: "job.failed", OccurredAt: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), TenantID: "acme",
			ProjectID: "web", IdempotencyKey: "k", Job: &events.Job{ID: "t", RunID: "r"},
		}, "e1", int64(i), json.RawMessage(`{"payload":""}`))
	}
	return list
}

func TestEntryFields(t *testing.T) {
	t.Parallel()
	b, publisher := setup(t)
	if _, err := publisher.Publish(t.Context(), list(1)); err != nil {
		t.Fatal(err)
	}
	want := [][]entry{{{
		EventBusName: "a-bus", Source: "orch.event", DetailType: "job.failed",
		Detail: `{"specversion":"1.0","id":"event-0","type":"job.failed","time":"2026-11-21T09:00:00Z","source":"urn:orch:tenant:acme","subject":"task/t",` +
			`"datacontenttype":"application/json","sequence":"00000000000000000000","epoch":"e1","idempotencykey":"k","tenantid":"acme",` +
			`"projectid":"web","taskid":"t","runid":"r","data":{"payload":""}}`,
		Time: 1795251600, Resources: []string{"run/r", "task/t"},
	}}}
	if diff := cmp.Diff(want, b.requests); diff != "" {
		t.Error(diff)
	}
}

func TestRequestsAreBatched(t *testing.T) {
	t.Parallel()
	b, publisher := setup(t)
	if _, err := publisher.Publish(t.Context(), list(21)); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, r := range b.requests {
		sizes = append(sizes, len(r))
	}
	slices.Sort(sizes)
	if want := []int{1, 10, 10}; !slices.Equal(sizes, want) {
		t.Errorf("21 events: got requests with %v entries, want %v", sizes, want)
	}
}

// TestOnlyRefusedEventsFail refuses two of twelve events, in different
// requests.
func TestOnlyRefusedEventsFail(t *testing.T) {
	t.Parallel()
	b, publisher := setup(t)
	b.refuses = func(e entry) string {
		if strings.Contains(e.Detail, `"event-3"`) || strings.Contains(e.Detail, `"event-11"`) {
			return "ThrottlingException"
		}
		return ""
	}
	failed, err := publisher.Publish(t.Context(), list(12))
	if diff := cmp.Diff([]int{3, 11}, failed); diff != "" || !fault.Is(err, fault.Unavailable) {
		t.Errorf("got failed %v (%v)", failed, err)
	}
	if !strings.Contains(err.Error(), "event-3") || !strings.Contains(err.Error(), "ThrottlingException") {
		t.Errorf("got an error without the events and reasons: %v", err)
	}
}

// TestFailedRequestsAreIndependent fails one of two requests.
func TestFailedRequestsAreIndependent(t *testing.T) {
	t.Parallel()
	b, publisher := setup(t)
	b.fails = []awstest.Refusal{{Code: "AccessDeniedException", Message: "not yours"}}
	failed, err := publisher.Publish(t.Context(), list(12))
	first, second := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []int{10, 11}
	if !slices.Equal(failed, first) && !slices.Equal(failed, second) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("got failed %v (%v)", failed, err)
	}
}

func TestThrottlingIsRetried(t *testing.T) {
	t.Parallel()
	b, publisher := setup(t)
	for range 5 {
		b.fails = append(b.fails, awstest.Refusal{Code: "ThrottlingException", Message: "slow down"})
	}
	if failed, err := publisher.Publish(t.Context(), list(2)); err != nil || failed != nil {
		t.Errorf("got failed %v (%v)", failed, err)
	}
}

func TestBusNameIsRequired(t *testing.T) {
	t.Parallel()
	if _, err := eventbridge.New(awstest.Serve(t, nil), ""); err == nil {
		t.Error("no bus: got success")
	}
}
