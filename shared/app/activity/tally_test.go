package activity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/activity"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

var who = port.Identity{Tenant: "a"}

// world has a stream of events and its figures.
type world struct {
	apitest.Parts
	feed  port.Feed
	store *racing
	tally *activity.Tally
	head  port.Head
}

// racing is a store in which another process commits first, if that is set.
type racing struct {
	activity.Store
	first  func()
	writes int
}

func (r *racing) WriteResources(ctx context.Context, save, remove []port.Resource, notes ...port.Note) error {
	r.writes++
	if first := r.first; first != nil {
		r.first = nil
		first()
	}
	return r.Store.WriteResources(ctx, save, remove, notes...)
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{Parts: apitest.NewParts(t)}
	w.feed = fake.NewFeed(w.Clock, 30*24*time.Hour, nil, func(err error) { t.Error(err) })
	w.store = &racing{Store: w.Store}
	w.tally = activity.NewTally(w.store, w.feed, w.Clock, slog.New(slog.DiscardHandler))
	return w
}

// add appends the events of runs of a job: each one is accepted, and fails at once if failed.
func (w *world) add(t *testing.T, runs int, failed bool) {
	t.Helper()
	for n := 0; n < runs; {
		b := port.Batch{After: w.head.Newest}
		for ; n < runs && len(b.Records) < 200; n++ {
			id := fmt.Sprintf("run-%d", w.head.Newest+int64(len(b.Records)))
			job := events.Job{ID: id, RunID: id, Type: events.JobPackRun, DefinitionID: "nightly", State: "Pending", Seq: 1}
			b.Records = append(b.Records, w.event(t, eventtype.Accepted, job, len(b.Records)))
			if failed {
				job.State, job.From, job.Seq, job.Fault = "Failed", "Running", 2, &events.Fault{Code: "PROGRAM_EXIT", Message: "exit code 1"}
				b.Records = append(b.Records, w.event(t, eventtype.Failed, job, len(b.Records)))
			}
		}
		var err error
		if w.head, err = w.feed.Append(t.Context(), port.EventStream("a"), b); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) event(t *testing.T, kind eventtype.Type, job events.Job, n int) port.FeedRecord {
	t.Helper()
	id := fmt.Sprintf("%026d", w.head.Newest+int64(n)+1)
	e := events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(id), EventType: kind, OccurredAt: w.Clock.Now().UTC(), IdempotencyKey: id,
		TenantID: "a", Actor: events.ActorOf("service:steps", nil), Job: &job,
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return port.FeedRecord{ID: id, At: e.OccurredAt, Data: data}
}

func (w *world) count(t *testing.T) {
	t.Helper()
	if err := w.tally.Count(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
}

func (w *world) want(t *testing.T, window string, created, failed int, whole bool) activity.Figures {
	t.Helper()
	f, err := w.tally.Figures(t.Context(), who, window)
	if err != nil {
		t.Fatal(err)
	}
	gotCreated, gotFailed := 0, 0
	for _, s := range f.Slots {
		gotCreated, gotFailed = gotCreated+s.Created, gotFailed+s.Failed
	}
	if gotCreated != created || gotFailed != failed || f.Whole != whole {
		t.Errorf("%s: got %d runs, %d failed, whole %t, want %d, %d, %t", window, gotCreated, gotFailed, f.Whole, created, failed, whole)
	}
	return f
}

// TestRunsAreCountedOnce counts before, between and after events, and by two processes.
func TestRunsAreCountedOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.want(t, "24h", 0, 0, true)
	w.add(t, 3, true)
	for _, window := range []string{"1h", "24h", "7d"} {
		w.want(t, window, 3, 3, true) // no sweep has counted them
	}
	w.count(t)
	w.add(t, 2, false)
	w.want(t, "1h", 5, 3, true)
	w.store.first = func() { w.count(t) }
	w.count(t)
	w.count(t)
	for _, window := range []string{"1h", "24h", "7d"} {
		w.want(t, window, 5, 3, true)
	}
	if at, err := w.tally.Position(t.Context(), "a"); err != nil || at != w.head.Newest {
		t.Errorf("got position %d and %v, want %d", at, err, w.head.Newest)
	}
	w.Clock.Advance(2 * time.Hour)
	w.add(t, 1, false)
	w.count(t)
	w.want(t, "1h", 1, 0, true)
	w.want(t, "24h", 6, 3, true)
	w.Clock.Advance(8 * 24 * time.Hour)
	w.want(t, "7d", 0, 0, true)
}

// TestOneWriteCountsManyRuns bounds the writes of a sweep and the reads of a page.
func TestOneWriteCountsManyRuns(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.add(t, 2400, false)
	if f := w.want(t, "24h", 0, 0, false); !f.Until.Equal(w.Clock.Now()) {
		t.Errorf("got %s, want the time of the first event", f.Until)
	}
	w.count(t)
	w.want(t, "24h", 2400, 0, true)
	if w.store.writes != 1 {
		t.Errorf("got %d writes, want 1", w.store.writes)
	}
}

func TestFiguresAreThoseOfTheTenant(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.add(t, 1, false)
	w.count(t)
	f, err := w.tally.Figures(t.Context(), port.Identity{Tenant: "b"}, "24h")
	if err != nil || f.Slots[24].Created != 0 {
		t.Errorf("got %+v and %v, want nothing of another tenant", f.Slots[24], err)
	}
	if _, err := w.tally.Figures(t.Context(), who, "1y"); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("got %v, want an invalid window", err)
	}
}

// TestUnreadableEventsAreLeftOut has a record that is no event.
func TestUnreadableEventsAreLeftOut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var err error
	if w.head, err = w.feed.Append(t.Context(), port.EventStream("a"), port.Batch{Records: []port.FeedRecord{{ID: "x", At: w.Clock.Now(), Data: []byte("?")}}}); err != nil {
		t.Fatal(err)
	}
	w.add(t, 1, false)
	w.count(t)
	w.want(t, "1h", 1, 0, true)
}

func TestFaultsOfTheStoreAreReturned(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.add(t, 1, false)
	broken := errors.New("broken")
	w.store.Store = failing{w.store.Store, broken}
	if err := w.tally.Count(t.Context(), "a"); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if _, err := w.tally.Figures(t.Context(), who, "1h"); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

type failing struct {
	activity.Store
	err error
}

func (f failing) LoadResource(context.Context, port.ResourceRef) (port.Resource, error) {
	return port.Resource{}, f.err
}

// TestSpentIsThatOfTheBudget ends an inference task between two states of the budget.
func TestSpentIsThatOfTheBudget(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.store.Store = spending{w.store.Store}
	w.add(t, 1, true)
	w.count(t)
	if f := w.want(t, "24h", 1, 1, true); f.Slots[24].Spent != nil {
		t.Errorf("got %+v without an inference task, want nothing", f.Slots[24].Spent)
	}
	job := events.Job{ID: "i", RunID: "i", Type: events.JobInference, State: "Completed", From: "Running", Seq: 2}
	var err error
	if w.head, err = w.feed.Append(t.Context(), port.EventStream("a"), port.Batch{After: w.head.Newest, Records: []port.FeedRecord{w.event(t, eventtype.Completed, job, 0)}}); err != nil {
		t.Fatal(err)
	}
	w.count(t)
	if f := w.want(t, "24h", 1, 1, true); f.Slots[24].Spent == nil || f.Slots[24].Spent.CostNano != 7 {
		t.Errorf("got %+v, want what the budget has spent", f.Slots[24].Spent)
	}
}

type spending struct{ activity.Store }

func (spending) Account(_ context.Context, tenant, scope string) (budget.Account, error) {
	return budget.Account{Tenant: tenant, Scope: scope, Spent: budget.Amount{Turns: 1, CostNano: 7}}, nil
}
