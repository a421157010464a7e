package relay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/functions/relay"
	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// stage is the relay with a feed, a bus, its log and its metrics.
type stage struct {
	*testing.T
	bus   *fake.Publisher
	hooks hooks
	// feedLost and busLost mean that the feed or the bus is not reachable.
	feedLost, busLost bool
	log               bytes.Buffer
	counts            map[string]int
	observing         sync.Mutex
	observed          map[string]float64 // by name and labels; the last value of a gauge
	// runs are the recorded samples of ended runs, by time.
	runs   map[time.Time]float64
	handle lambdakit.TaskFunc
	outbox port.Outbox
	traces fake.Traces
	clock  *clock.Virtual
	// healed makes poison readable.
	healed bool
}

// decode decodes an image; see the function decode.
func (s *stage) decode(image json.RawMessage) (port.Change, error) {
	if s.healed {
		image = bytes.ReplaceAll(image, []byte("poison"), []byte("healed"))
	}
	return decode(image)
}

// redrive relays the outbox, as the schedule does, and returns the response.
func (s *stage) redrive() string {
	s.Helper()
	answer, err := s.handle(s.recording(s.Context()), json.RawMessage(`{"version":"0","detail-type":"Scheduled Event","source":"aws.events","detail":{}}`))
	if err != nil && !s.feedLost && !s.busLost {
		s.Fatal(err)
	}
	return string(answer)
}

// ids returns the ids of the published events.
func (s *stage) ids() string {
	var ids []string
	for _, e := range s.bus.Events() {
		id, err := events.ULID(e.ID)
		if err != nil {
			s.Fatal(err)
		}
		if e.Type != "relay.unreadable" {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, " ")
}

// recording returns a context whose samples are added to runs.
func (s *stage) recording(ctx context.Context) context.Context {
	return lambdakit.WithRecorder(lambdakit.WithObserver(ctx, s.observe), func(at time.Time, samples []series.Sample) {
		for _, sample := range samples {
			if sample.Name == series.Runs {
				s.runs[at] += sample.Value
			}
		}
	})
}

func setup(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, counts: map[string]int{}, observed: map[string]float64{}, runs: map[time.Time]float64{}, clock: clock.NewVirtual(at)}
	unless := func(lost *bool) fake.Plan {
		return func(fake.Call) fake.Fate {
			if *lost {
				return fake.Lost
			}
			return fake.Applied
		}
	}
	s.bus = fake.NewPublisher(unless(&s.busLost))
	feed := fake.NewFeed(s.clock, 7*24*time.Hour, unless(&s.feedLost), func(err error) { t.Error(err) })
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	keys := fake.NewEventKeys(nil)
	service := delivery.NewRelay(feed, keys, delivery.NoTurns{}, s.clock, log, api.Published("https://sortie.example.org"), lambdakit.Observe)
	db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}})
	if err := awsfake.CreateTable(t.Context(), db.AWS(), "sortie"); err != nil {
		t.Fatal(err)
	}
	outbox, err := dynamo.Open(db.AWS(), dynamo.Config{Table: "sortie", Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	s.outbox = outbox
	levels := delivery.NewEventLevels(outbox, feed, outbox, s.clock, true)
	bus := delivery.NewBus(feed, s.bus, keys, delivery.NoTurns{}, log)
	streams := delivery.NewStreamSweep(service, []delivery.StreamWork{bus.Work()}, nil)
	s.handle = relay.Handler(service, bus, &s.hooks, streams, outbox, s.decode, &s.traces, levels.Lags, nil, s.clock.Now)
	return s
}

// observe adds counters and stores gauges.
func (s *stage) observe(samples ...series.Sample) {
	s.observing.Lock()
	defer s.observing.Unlock()
	for _, sample := range samples {
		name := strings.Join(append([]string{sample.Name}, sample.Labels...), " ")
		if sample.Name == series.RelayLag {
			s.observed[name] = 0
		}
		s.observed[name] += sample.Value
	}
}

var at = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// decode decodes images of the form {"run": "r", "ids": ["a", "b"]}.
func decode(image json.RawMessage) (port.Change, error) {
	var content struct {
		Run string
		IDs []string
	}
	if err := json.Unmarshal(image, &content); err != nil {
		return port.Change{}, err
	}
	c := port.Change{Run: run.Run{Tenant: "default", ID: content.Run, TaskID: "task-" + content.Run, CorrelationID: "c", Work: spec.Work{Kind: spec.KindExport}}}
	if content.Run == "poison" {
		return c, errors.New("it is poison")
	}
	for i, id := range content.IDs {
		c.Events = append(c.Events, run.Event{
			ID: id, Seq: i + 1, Type: run.EventFailed, At: at, From: run.Terminating, State: run.Failed, Attempt: 2,
			Fault: fault.New(fault.WorkerLost, "it is gone"),
		})
	}
	return c, nil
}

// relay delivers records, numbered from 1, and returns the response.
func (s *stage) relay(images ...string) string {
	s.Helper()
	var records []string
	for i, image := range images {
		records = append(records, fmt.Sprintf(`{"eventID":"x","eventName":"MODIFY","dynamodb":{"SequenceNumber":"%d","ApproximateCreationDateTime":%d%s}}`, i+1, at.Unix(), image))
	}
	ctx := lambdakit.WithCounter(s.recording(s.Context()), func(name string, n int) { s.counts[name] += n })
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
	if n := s.observed[series.RelayEvents]; len(s.counts) > 0 || n != 4 {
		t.Errorf("got the counts %v and %v events, want no count and four events", s.counts, n)
	}
}

// TestRunIsRecordedOnce records the end of a run when its change leaves the stream. It is not
// recorded while the change is delivered again, or while it is set aside until a redrive.
func TestRunIsRecordedOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	want := func(n float64) {
		t.Helper()
		if got := s.runs[at]; got != n {
			t.Errorf("got %v runs, want %v", got, n)
		}
	}
	s.feedLost = true
	s.relay(image("a", "a"), image("b", "b"))
	want(0)
	s.feedLost = false
	s.relay(image("a", "a"), image("b", "b"))
	want(2)
	s.feedLost = true
	s.clock.Advance(21 * time.Hour)
	s.relay(image("d", "d"))
	want(2)
	s.redrive()
	want(2)
	s.feedLost = false
	s.redrive()
	want(3)
	s.redrive()
	want(3)
}

// TestTraceIsExportedOnce exports a commit when its change leaves the stream, before the call
// ends, and limits the time for it.
func TestTraceIsExportedOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	want := func(runs string) {
		t.Helper()
		if got := strings.Join(s.traces.Sent, " "); got != runs || len(s.traces.Waiting) > 0 {
			t.Errorf("got traces %q, and %v after the call, want %q", got, s.traces.Waiting, runs)
		}
	}
	s.relay(image("a", "a"), image("no run"))
	want("a")
	s.feedLost = true
	s.relay(image("b", "b"), image("c", "c"))
	want("a")
	s.feedLost, s.traces.Lost = false, 7
	s.relay(image("b", "b"), image("c", "c"))
	want("a b c")
	if s.counts["TracesDropped"] != 7 || s.traces.Limit <= 0 || s.traces.Limit > 2*time.Second {
		t.Errorf("got metrics %v and a limit of %s, want 7 dropped traces and at most 2s", s.counts, s.traces.Limit)
	}
	s.feedLost, s.traces.Lost = true, 0
	s.clock.Advance(21 * time.Hour)
	s.relay(image("d", "d"))
	want("a b c")
	s.feedLost = false
	s.redrive()
	want("a b c d")
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
	if published := s.bus.Events()[1]; published.Type != "relay.unreadable" || published.Position != 2 {
		t.Errorf("got %s at position %d, want relay.unreadable at 2", published.Type, published.Position)
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

// TestOutageOfTheFeedLosesNothing checks that records are delivered again until they
// are nearly a day old, are set aside then, and are published by a redrive, in order.
func TestOutageOfTheFeedLosesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.feedLost = true
	const again = `{"batchItemFailures":[{"itemIdentifier":"1"},{"itemIdentifier":"2"}]}`
	for range 3 {
		if answer := s.relay(image("r", "a"), image("r", "b")); answer != again {
			t.Errorf("at %v: got response %s, want %s", s.clock.Now(), answer, again)
		}
		s.clock.Advance(9 * time.Hour)
	}
	if answer := s.relay(image("r", "a"), image("r", "b")); answer != none {
		t.Errorf("at %v: got response %s, want %s", s.clock.Now(), answer, none)
	}
	if answer, err := s.handle(t.Context(), json.RawMessage(`{"redrive":true}`)); string(answer) != `{"batchItemFailures":[],"left":2}` || err != nil {
		t.Errorf("got response %s (%v) to a redrive during the outage, want 2 left", answer, err)
	}
	s.feedLost = false
	if answer := s.redrive(); answer != `{"batchItemFailures":[],"redriven":2}` || s.ids() != "a b" {
		t.Errorf("got response %s and events %s, want 2 redriven, a and b", answer, s.ids())
	}
}

// TestOutageOfTheBusHoldsUpNothing checks that the events are in their stream, and that the
// schedule publishes them later.
func TestOutageOfTheBusHoldsUpNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.busLost = true
	if answer := s.relay(image("r", "a"), image("r", "b")); answer != none || s.counts["BusFailures"] != 1 || s.observed[series.RelayEvents] != 2 {
		t.Errorf("got response %s and metrics %v, want %s, a failure of the bus and two events", answer, s.counts, none)
	}
	s.clock.Advance(time.Minute)
	s.redrive()
	if late := s.observed[series.RelayLag+" bus"]; late != 60 {
		t.Errorf("got a lag of %v s of the bus, want 60: %v", late, s.observed)
	}
	s.busLost = false
	s.redrive()
	if late := s.observed[series.RelayLag+" bus"]; late != 60 {
		t.Errorf("got the lag %v after the outage, want no further sample", late)
	}
	if s.ids() != "a b" {
		t.Errorf("got events %s, want a b", s.ids())
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

func noLags(context.Context) ([]series.Sample, error) { return nil, nil }

func FuzzRelay(f *testing.F) {
	f.Add(`{"Records":[{"dynamodb":{"SequenceNumber":"1","NewImage":{"run":"r","ids":["a"]}}}]}`)
	f.Add(`{"Records":[{"dynamodb":{"SequenceNumber":"1","NewImage":{"run":"poison"}}},null]}`)
	f.Add(`{"Records":null}`)
	f.Fuzz(func(t *testing.T, input string) {
		feed, log := fake.NewFeed(clock.System{}, time.Hour, nil, func(error) {}), slog.New(slog.DiscardHandler)
		keys := fake.NewEventKeys(nil)
		service := delivery.NewRelay(feed, keys, delivery.NoTurns{}, clock.System{}, log, api.Published("https://sortie.example.org"), series.Discard)
		answer, err := relay.Handler(service, delivery.NewBus(feed, fake.NewPublisher(nil), keys, delivery.NoTurns{}, log), &hooks{}, delivery.NewStreamSweep(service, nil, nil), nil, decode, &fake.Traces{}, noLags, nil, time.Now)(t.Context(), json.RawMessage(input))
		// Without an outbox, setting aside panics.
		if name := lambdakit.ErrorName(err); err != nil && name != "InvalidInput" && name != "Panicked" {
			t.Errorf("%s: got %v, want InvalidInput, Panicked or nil", input, err)
		}
		if err == nil && !json.Valid(answer) {
			t.Errorf("got response %s, want valid JSON", answer)
		}
	})
}
