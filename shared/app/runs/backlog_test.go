package runs_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// backlogStore has a queue of any length and counts its reads.
type backlogStore struct {
	port.Store
	queue         []run.Ref
	reads, counts int
}

func (s *backlogStore) Queue(_ context.Context, _, _ string, limit int) ([]run.Ref, error) {
	s.reads++
	return s.queue[:min(limit, len(s.queue))], nil
}

func (s *backlogStore) QueueLength(_ context.Context, _, _ string, most int) (int, error) {
	s.counts++
	return min(len(s.queue), most), nil
}

func (s *backlogStore) Holders(context.Context, string, string, int) ([]run.Ref, error) {
	return []run.Ref{{Tenant: "local", ID: "holder"}}, nil
}

func (s *backlogStore) LoadPool(context.Context, platform.PoolRef) (platform.Pool, error) {
	return platform.Pool{}, port.ErrNotFound
}

func (s *backlogStore) Find(_ context.Context, tenant, taskID string) (run.Run, error) {
	return run.Run{
		Tenant: tenant, ID: taskID, TaskID: taskID, State: run.Pending,
		Slot: platform.Slot{Pool: "default", Limit: 1, State: platform.SlotQueued},
	}, nil
}

func (s *backlogStore) Create(context.Context, port.Write, *port.IdempotencyKey, ...port.Write) (*run.Run, error) {
	return nil, nil //nolint:nilnil // a new run
}

func (s *backlogStore) enqueue(name string) {
	s.queue = append(s.queue, run.Ref{Tenant: "local", ID: name})
}

// TestPositionsShareOneRead reads many positions of a long queue: the queue is read
// once a second, and only its head.
func TestPositionsShareOneRead(t *testing.T) {
	t.Parallel()
	h := setup(t)
	store := &backlogStore{}
	for range 33_000 {
		store.enqueue(h.random.Hex(8))
	}
	queries := runs.NewQueries(runs.NewRecords(store, h.clock, slog.New(slog.DiscardHandler)))
	want := func(i, position int) {
		t.Helper()
		v, err := queries.Task(h.Context(), client, store.queue[i].ID)
		if err != nil || v.QueuePosition != position {
			t.Errorf("run %d of the queue: got position %d, %v; want %d", i, v.QueuePosition, err, position)
		}
	}
	for i := range 500 {
		want(i, i)
		want(limit.QueuePositions-1, limit.QueuePositions-1)
		want(limit.QueuePositions+i*50, limit.QueuePositions)
	}
	if store.reads != 1 {
		t.Errorf("got %d reads of the queue at one time, want 1", store.reads)
	}
	store.queue = store.queue[5:]
	h.clock.to(h.clock.now.Add(time.Second))
	want(0, 0)
	if store.reads != 2 {
		t.Errorf("got %d reads of the queue after a second, want 2", store.reads)
	}
}

// TestNewRunHasItsPositionSoon joins a short queue after it was read.
func TestNewRunHasItsPositionSoon(t *testing.T) {
	t.Parallel()
	h := setup(t)
	store := &backlogStore{}
	store.enqueue("first")
	queries := runs.NewQueries(runs.NewRecords(store, h.clock, slog.New(slog.DiscardHandler)))
	position := func(id string) int {
		t.Helper()
		v, err := queries.Task(h.Context(), client, id)
		h.ok(err)
		return v.QueuePosition
	}
	if at := position("first"); at != 0 {
		t.Fatalf("got position %d, want 0", at)
	}
	store.enqueue("second")
	h.clock.to(h.clock.now.Add(100 * time.Millisecond))
	if at := position("second"); at != 1 {
		t.Errorf("got position %d after 100 ms, want 1", at)
	}
	// A run that left the queue is not searched for at each call.
	reads := store.reads
	for range 100 {
		if at := position("gone"); at != -1 {
			t.Fatalf("got position %d for a run outside the queue, want -1", at)
		}
	}
	if store.reads != reads {
		t.Errorf("got %d further reads, want 0", store.reads-reads)
	}
}

func TestFullQueueRefusesNewRuns(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine, func(c *runs.Config) { c.QueueLimit = 3 })
	tasks := h.queue(4)
	submit := func() error {
		_, _, err := h.service.Export(h.Context(), exportCall())
		return err
	}
	h.clock.to(h.clock.now.Add(2 * time.Second))
	for range 2 {
		if err := submit(); !fault.Is(err, fault.AdmissionReject) {
			t.Fatalf("got %v with a full queue, want AdmissionReject", err)
		}
	}
	if _, _, err := h.service.Retry(h.Context(), runs.RetryRequest{Identity: client, TaskID: tasks[0]}); !fault.Is(err, fault.NotEnded) {
		t.Fatalf("got %v, want NotEnded", err)
	}
	runs, _, err := h.store.List(h.Context(), "local", port.Page{Limit: 100})
	h.ok(err)
	if len(runs) != len(tasks) {
		t.Errorf("got %d stored runs, want the %d that were accepted", len(runs), len(tasks))
	}
	// The end of a run makes room for one more.
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.clock.to(h.clock.now.Add(time.Second))
	h.ok(submit())
	for _, task := range tasks[1:] {
		if r := h.record(task); r.State.Terminal() {
			t.Errorf("got %s for an accepted task, want it queued or running", r.State)
		}
	}
}

// TestQueueIsCountedRarely accepts many runs. The queue is counted again after a time, not for
// each request. Until then the runs count that this process has accepted.
func TestQueueIsCountedRarely(t *testing.T) {
	t.Parallel()
	h := setup(t)
	store := &backlogStore{}
	leave := runs.LeaveToSweep{}
	life := runs.NewLifecycle(runs.NewRecords(store, h.clock, slog.New(slog.DiscardHandler)), h.calls, leave, leave, leave,
		runs.Config{Pool: "default", MaxMachines: 1, QueueLimit: 1000})
	requests := runs.NewRequests(life, h.random.Hex, leave, runs.Config{SourceURL: "https://source.example"})
	submission := runs.Submission{
		Identity: client, Work: spec.Work{Kind: "export", Format: "mods"},
		Policy: func(spec.Policy) (spec.Policy, error) { return h.config.Policy, nil },
	}
	accepted := 0
	for range 1500 {
		_, _, err := requests.Submit(h.Context(), submission)
		if err == nil {
			accepted++
		} else if !fault.Is(err, fault.AdmissionReject) {
			t.Fatal(err)
		}
	}
	if accepted != 1000 || store.counts != 1 {
		t.Errorf("got %d runs accepted with %d counts, want 1000 with 1", accepted, store.counts)
	}
}
