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
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/porttest/awsfake"
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
	outbox port.Outbox
	now    time.Time
	// healed makes poison readable.
	healed bool
}

// decode decodes an image; see the function decode.
func (s *stage) decode(image json.RawMessage) (run.Run, []run.Event, error) {
	if s.healed {
		image = bytes.ReplaceAll(image, []byte("poison"), []byte("healed"))
	}
	return decode(image)
}

// redrive publishes the outbox and returns the response.
func (s *stage) redrive() string {
	s.Helper()
	answer, err := s.handle(s.Context(), json.RawMessage(`{"version":"0","detail-type":"Scheduled Event","source":"aws.events","detail":{}}`))
	if err != nil {
		s.Fatal(err)
	}
	return string(answer)
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
	s := &stage{T: t, counts: map[string]int{}, now: at}
	s.bus = fake.NewPublisher(func(c fake.Call) fake.Fate {
		if slices.Contains(s.lost, c.Subject) {
			return fake.Lost
		}
		return fake.Applied
	})
	service := orchestrator.NewRelay(s.bus, slog.New(slog.NewTextHandler(&s.log, nil)))
	db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}})
	if err := awsfake.CreateTable(t.Context(), db.AWS(), "sortie"); err != nil {
		t.Fatal(err)
	}
	outbox, err := dynamo.Open(db.AWS(), dynamo.Config{Table: "sortie", Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	s.outbox = outbox
	s.handle = relay.Handler(service, outbox, s.decode, func() time.Time { return s.now })
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
		records = append(records, fmt.Sprintf(`{"eventID":"x","eventName":"MODIFY","dynamodb":{"SequenceNumber":"%d","ApproximateCreationDateTime":%d%s}}`, i+1, at.Unix(), image))
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

// TestUnreadableRecordIsSetAside also checks that the records behind it are
// published, and that a redrive publishes it once it can be read.
func TestUnreadableRecordIsSetAside(t *testing.T) {
	t.Parallel()
	s := setup(t)
	if answer := s.relay(image("r", "a"), image("poison", "p", "q"), image("r", "b")); answer != none {
		t.Errorf("got response %s, want %s", answer, none)
	}
	if ids := s.ids(); ids != "a b" || !strings.Contains(s.log.String(), "change=2") || s.counts["RelaySetAside"] != 1 {
		t.Errorf("got events %s, metrics %v and log %s, want a b and change 2", ids, s.counts, &s.log)
	}
	if answer := s.redrive(); answer != `{"batchItemFailures":[],"left":1}` {
		t.Errorf("got response %s to a redrive, want 1 left", answer)
	}
	s.healed = true
	if answer := s.redrive(); answer != `{"batchItemFailures":[],"redriven":1}` || s.ids() != "a b p q" {
		t.Errorf("got response %s and events %s, want 1 redriven and a b p q", answer, s.ids())
	}
	if answer, err := s.handle(t.Context(), json.RawMessage(`{"redrive":true}`)); string(answer) != none || err != nil || s.ids() != "a b p q" {
		t.Errorf("got response %s, %v and events %s to another redrive, want no change", answer, err, s.ids())
	}
}

func TestRecordThatIsNoObjectIsSetAside(t *testing.T) {
	t.Parallel()
	s := setup(t)
	if answer := s.relay(`,"NewImage":[]`, image("r", "b")); answer != none || s.ids() != "b" {
		t.Errorf("got response %s and events %s, want %s and b", answer, s.ids(), none)
	}
}

// TestOutageOfTheBusLosesNothing checks that records are delivered again until they
// are nearly a day old, are set aside then, and are published by a redrive.
func TestOutageOfTheBusLosesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.lost = []string{"a", "b"}
	const again = `{"batchItemFailures":[{"itemIdentifier":"1"},{"itemIdentifier":"2"}]}`
	for _, age := range []time.Duration{0, time.Hour, 19 * time.Hour} {
		s.now = at.Add(age)
		if answer := s.relay(image("r", "a"), image("r", "b")); answer != again {
			t.Errorf("after %v: got response %s, want %s", age, answer, again)
		}
	}
	s.now = at.Add(20 * time.Hour)
	if answer := s.relay(image("r", "a"), image("r", "b")); answer != none {
		t.Errorf("after %v: got response %s, want %s", 20*time.Hour, answer, none)
	}
	s.now = at.Add(48 * time.Hour)
	if answer := s.redrive(); answer != `{"batchItemFailures":[],"left":2}` {
		t.Errorf("got response %s to a redrive during the outage, want 2 left", answer)
	}
	s.lost = nil
	if answer := s.redrive(); answer != `{"batchItemFailures":[],"redriven":2}` {
		t.Errorf("got response %s, want 2 redriven", answer)
	}
	got := strings.Fields(s.ids())
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got events %v, want a and b", got)
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
		answer, err := relay.Handler(service, nil, decode, time.Now)(t.Context(), json.RawMessage(input))
		// Without an outbox, setting aside panics.
		if name := lambdakit.ErrorName(err); err != nil && name != "InvalidInput" && name != "Panicked" {
			t.Errorf("%s: got %v, want InvalidInput, Panicked or nil", input, err)
		}
		if err == nil && !json.Valid(answer) {
			t.Errorf("got response %s, want valid JSON", answer)
		}
	})
}
