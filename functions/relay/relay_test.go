package relay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/functions/relay"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/porttest/fake"
	"github.com/sortie-dev/sortie/shared/run"
)

// stage is the relay with a publisher, its log and its metrics.
type stage struct {
	*testing.T
	bus    *fake.Publisher
	lost   []string // ids of events that the publisher fails to publish
	log    bytes.Buffer
	counts map[string]int
	handle lambdakit.TaskFunc
}

// ids returns the ids of the published events.
func (s *stage) ids() string {
	var ids []string
	for _, e := range s.bus.Events() {
		ids = append(ids, e.Event.ID)
	}
	return strings.Join(ids, " ")
}

func setup(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, counts: map[string]int{}}
	s.bus = fake.NewPublisher(func(c fake.Call) fake.Fate {
		if slices.Contains(s.lost, c.Subject) {
			return fake.Lost
		}
		return fake.Applied
	})
	service := orchestrator.NewRelay(s.bus, slog.New(slog.NewTextHandler(&s.log, nil)))
	s.handle = relay.Handler(service, decode)
	return s
}

var at = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// decode decodes images of the form {"run": "r", "ids": ["a", "b"]}.
func decode(image json.RawMessage) (run.Run, []run.Event, error) {
	var content struct {
		Run string
		IDs []string
	}
	if err := json.Unmarshal(image, &content); err != nil {
		return run.Run{}, nil, err
	}
	if content.Run == "poison" {
		return run.Run{}, nil, errors.New("it is poison")
	}
	r := run.Run{Tenant: "default", ID: content.Run, TaskID: "task-" + content.Run, CorrelationID: "c"}
	var events []run.Event
	for i, id := range content.IDs {
		events = append(events, run.Event{
			ID: id, Seq: i + 1, Type: run.EventFailed, At: at, From: run.Terminating, State: run.Failed, Attempt: 2,
			Fault: fault.New(fault.WorkerLost, "it is gone"),
		})
	}
	return r, events, nil
}

// relay delivers records, numbered from 1, and returns the response.
func (s *stage) relay(images ...string) string {
	s.Helper()
	var records []string
	for i, image := range images {
		records = append(records, fmt.Sprintf(`{"eventID":"x","eventName":"MODIFY","dynamodb":{"SequenceNumber":"%d"%s}}`, i+1, image))
	}
	ctx := lambdakit.WithCounter(s.Context(), func(name string, n int) { s.counts[name] += n })
	answer, err := s.handle(ctx, json.RawMessage(`{"Records":[`+strings.Join(records, ",")+`]}`))
	if err != nil {
		s.Fatal(err)
	}
	return string(answer)
}

func image(run string, ids ...string) string {
	text, _ := json.Marshal(ids) //nolint:errchkjson // strings
	return fmt.Sprintf(`,"NewImage":{"run":%q,"ids":%s}`, run, text)
}

const none = `{"batchItemFailures":[]}`

func TestEventsArePublishedInOrder(t *testing.T) {
	t.Parallel()
	s := setup(t)
	if answer := s.relay(image("r", "a", "b"), image("other", "c"), image("no run"), "", image("r", "d")); answer != none {
		t.Errorf("got response %s, want %s", answer, none)
	}
	if ids := s.ids(); ids != "a b c d" {
		t.Errorf("got events %s, want a b c d", ids)
	}
	if diff := cmp.Diff(map[string]int{"EventsRelayed": 4}, s.counts); diff != "" {
		t.Error(diff)
	}
}

// TestPublishedEventMatchesTheAPI checks the event and the ids of its owner.
func TestPublishedEventMatchesTheAPI(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.relay(image("r", "a"))
	if got := s.ids(); got != "a" {
		t.Fatalf("got events %q published, want %q", got, "a")
	}
	event := s.bus.Events()[0]
	if event.Tenant != "default" || event.RunID != "r" || event.TaskID != "task-r" || event.CorrelationID != "c" || event.Event.Type != run.EventFailed {
		t.Errorf("got %+v, want the failed event of task-r", event)
	}
	const want = `{"tenantId":"default","taskId":"task-r","runId":"r","correlationId":"c","eventId":"a","seq":1,"type":"job.failed",` +
		`"occurredAt":"2026-11-21T09:00:00Z","from":"Terminating","state":"Failed","attempt":2,` +
		`"fault":{"code":"WORKER_LOST","category":"INFRASTRUCTURE","blame":"worker","retryable":true,"message":"it is gone"}}`
	if diff := cmp.Diff(want, string(event.Detail)); diff != "" {
		t.Error(diff)
	}
}

func TestUnpublishedEventsAreReturned(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.lost = []string{"c", "d"}
	if answer := s.relay(image("r", "a"), image("r", "b", "c", "d"), image("r", "e")); answer != `{"batchItemFailures":[{"itemIdentifier":"2"}]}` {
		t.Errorf("got response %s, want item 2 failed", answer)
	}
	if log := s.log.String(); strings.Count(log, "was not published") != 2 || !strings.Contains(log, "run_id=r") || !strings.Contains(log, "the call was lost") {
		t.Errorf("got log %s, want two events of run r that were not published", log)
	}
	s.lost = nil
	if answer := s.relay(image("r", "b", "c", "d"), image("r", "e")); answer != none || s.counts["RelayFailures"] != 1 {
		t.Errorf("got response %s, metrics %v, want %s and 1 failure", answer, s.counts, none)
	}
}

// TestMalformedRecordDoesNotBlockLaterOnes also checks that the response lists
// it.
func TestMalformedRecordDoesNotBlockLaterOnes(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]string{"unreadable": image("poison"), "no object": `,"NewImage":[]`} {
		s := setup(t)
		if answer := s.relay(image("r", "a"), poison, image("r", "b")); answer != `{"batchItemFailures":[{"itemIdentifier":"2"}]}` {
			t.Errorf("%s: got response %s, want item 2 failed", name, answer)
		}
		if ids := s.ids(); ids != "a b" || !strings.Contains(s.log.String(), "change=2") {
			t.Errorf("%s: got events %s and log %s, want a b and change 2", name, ids, &s.log)
		}
	}
}

func TestMalformedBatchIsInvalid(t *testing.T) {
	t.Parallel()
	for _, input := range []string{`[]`, `{"Records":[1]}`, `{"Records":[{}]}`, `{"Records":[{"dynamodb":{"NewImage":{}}}]}`} {
		_, err := setup(t).handle(t.Context(), json.RawMessage(input))
		if name := lambdakit.ErrorName(err); name != "InvalidInput" {
			t.Errorf("%s: got %v, want InvalidInput", input, err)
		}
	}
}

func FuzzRelay(f *testing.F) {
	f.Add(`{"Records":[{"dynamodb":{"SequenceNumber":"1","NewImage":{"run":"r","ids":["a"]}}}]}`)
	f.Add(`{"Records":[{"dynamodb":{"SequenceNumber":"1","NewImage":{"run":"poison"}}},null]}`)
	f.Add(`{"Records":null}`)
	f.Fuzz(func(t *testing.T, input string) {
		service := orchestrator.NewRelay(fake.NewPublisher(nil), slog.New(slog.DiscardHandler))
		answer, err := relay.Handler(service, decode)(t.Context(), json.RawMessage(input))
		if name := lambdakit.ErrorName(err); err != nil && name != "InvalidInput" {
			t.Errorf("%s: got %v, want InvalidInput or nil", input, err)
		}
		if err == nil && !json.Valid(answer) {
			t.Errorf("got response %s, want valid JSON", answer)
		}
	})
}
