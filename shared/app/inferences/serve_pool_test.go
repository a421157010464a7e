package inferences_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/prompts"
	"github.com/sortie-dev/sortie/shared/app/runs"
	systemclock "github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// serverLife is the life of a process that serves a pool.
const serverLife = 885 * time.Second

// called is a front door without a dispatcher, whose calls start processes with one, as AWS
// does. The clock is that of a bubble of testing/synctest.
type called struct {
	*testing.T
	clock   systemclock.System
	store   port.Store
	feed    port.AnswerFeed
	seats   port.Seats
	outputs port.Outputs
	config  runs.Config
	tasks   *inferences.Inference
	engines map[string]*mockengine.Engine
	// perServer is the number of tasks that a process serves at a time.
	perServer int
	// lose drops the calls of the front door.
	lose bool

	mu      sync.Mutex
	calls   int
	servers sync.WaitGroup
	kills   map[int]context.CancelFunc // by the number of the call
	crowd   map[string]int             // current requests by replica; most has the highest number
	most    map[string]int
}

// newCalled creates the pool "pool0" of mock engines that take a second for a token.
func newCalled(t *testing.T, replicas, slots int) *called {
	t.Helper()
	h := &called{T: t, perServer: 32, engines: map[string]*mockengine.Engine{}, kills: map[int]context.CancelFunc{}, crowd: map[string]int{}, most: map[string]int{}}
	db, err := sqlitetest.Open(t.Context(), filepath.Join(sqlitetest.Folder(t), "sortie.db"))
	h.ok(err)
	t.Cleanup(func() { _ = db.Close() })
	h.store, err = sqlite.NewStore(t.Context(), db, h.clock)
	h.ok(err)
	h.feed, err = sqlite.NewFeed(t.Context(), db, sqlite.FeedConfig{Clock: h.clock, Retention: 24 * time.Hour})
	h.ok(err)
	h.outputs, h.seats = fake.NewOutputs(h.clock, nil), fake.NewSeats(h.clock, nil)
	place := platform.EnginePlace{Kind: platform.EngineMock, Model: "mock", Slots: slots, Replicas: make([]platform.EngineReplica, replicas)}.WithIDs()
	for _, r := range place.Replicas {
		h.engines[r.ID] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: slots, TokenEvery: time.Second})
	}
	h.ok(h.store.SavePool(t.Context(), platform.Pool{Tenant: client.Tenant, ID: "pool0", Limit: place.Limit(), QueueLimit: 1000, Engine: &place}))
	h.config = runs.Config{
		Policy: spec.Policy{RecordRetention: 48 * time.Hour, OutputRetention: 24 * time.Hour, Retry: spec.Retry{InitialDelay: time.Second, Multiplier: 2, MaxDelay: time.Minute}},
		Pool:   "default", MockEngine: true, MostWithin: 14 * time.Minute,
	}
	leave := runs.LeaveToSweep{}
	life := runs.NewLifecycle(h.records(), runs.NoExecutions{}, leave, leave, inferences.NewCalls(func(_ context.Context, c inferences.DispatchCall) error {
		if h.lose {
			return errors.New("the call was lost")
		}
		h.call(c)
		return nil
	}, slog.New(slog.DiscardHandler)), h.config)
	requests := runs.NewRequests(life, randomHex, runs.StreamsIn(h.feed), h.config)
	h.tasks = app.NewInference(requests, randomHex, h.feed, h.models(), inferences.NoTranscripts{}, h.prompts(), series.Discard, h.config)
	return h
}

func (h *called) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// models returns the catalog of a process.
func (h *called) models() *artifacts.Models {
	return artifacts.NewModels(h.store, h.clock, slog.New(slog.DiscardHandler), api.ModelDocument, h.config.ModelKeys)
}

func (h *called) prompts() *prompts.Store { return prompts.New(h.store, h.outputs, h.clock) }

func (h *called) records() *runs.Records {
	return runs.NewRecords(h.store, h.clock, slog.New(slog.DiscardHandler))
}

// call starts a process that serves a pool.
func (h *called) call(c inferences.DispatchCall) {
	transcripts := artifacts.NewRegistry(
		h.store, h.outputs, h.clock, slog.New(slog.DiscardHandler), randomHex, h.config.Policy.RecordRetention, h.config.ArtifactLimit,
	)
	d, _ := app.NewDispatcher(app.TasksOnly(h.records(), h.config), randomHex, h.feed, h.models(), transcripts, h.prompts(), func(_ string, _ platform.EnginePlace, r platform.EngineReplica) (port.Engine, error) {
		return watched{h.engines[r.ID], h, r.ID}, nil
	}, series.Discard, inferences.DispatcherConfig{ID: "dispatcher-" + randomHex(4), Batch: 300 * time.Millisecond, MostServed: 14 * time.Minute}, h.config)
	ctx, kill := context.WithCancel(h.Context())
	h.mu.Lock()
	h.calls++
	h.kills[h.calls] = kill
	h.mu.Unlock()
	end := h.clock.Now().Add(serverLife)
	h.servers.Go(func() {
		err := d.ServePool(ctx, c, inferences.ServePoolConfig{Seats: h.seats, Tasks: h.perServer, End: end, Call: func(_ context.Context, c inferences.DispatchCall) error {
			h.call(c)
			return nil
		}})
		if err != nil && ctx.Err() == nil {
			h.Errorf("got %v, want no error", err)
		}
	})
}

// watched counts the requests of a replica.
type watched struct {
	*mockengine.Engine
	h  *called
	id string
}

func (e watched) Generate(ctx context.Context, g port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	e.h.mu.Lock()
	e.h.crowd[e.id]++
	e.h.most[e.id] = max(e.h.most[e.id], e.h.crowd[e.id])
	e.h.mu.Unlock()
	defer func() {
		e.h.mu.Lock()
		defer e.h.mu.Unlock()
		e.h.crowd[e.id]--
	}()
	return e.Engine.Generate(ctx, g, each)
}

// ask creates a task that generates a number of tokens, one a second.
func (h *called) ask(tokens int, within time.Duration) string {
	h.Helper()
	accepted, err := h.tasks.Create(h.Context(), inferences.NewTask{
		Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "count"}, MaxTokens: tokens, Within: within,
	})
	h.ok(err)
	return accepted.Run.TaskID
}

func (h *called) run(task string) run.Run {
	h.Helper()
	r, err := h.store.Find(h.Context(), client.Tenant, task)
	h.ok(err)
	return r
}

// ended waits for the end of a task, a second at a time.
func (h *called) ended(task string, limit time.Duration) run.Run {
	h.Helper()
	for range int(limit / time.Second) {
		if r := h.run(task); r.State.Terminal() {
			return r
		}
		h.ok(systemclock.Sleep(h.Context(), h.clock, time.Second))
	}
	h.Fatalf("the task %s is still %s after %s", task, h.run(task).State, limit)
	return run.Run{}
}

func (h *called) completed(tasks ...string) {
	h.Helper()
	for _, task := range tasks {
		if r := h.ended(task, 15*time.Minute); r.State != run.Completed {
			h.Errorf("got %s with %v, want Completed", r.State, r.Fault)
		}
	}
}

func (h *called) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

func TestShiftServesTasksOfItsPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newCalled(t, 1, 2)
		tasks := []string{h.ask(3, 0), h.ask(3, 0), h.ask(3, 0)} // the third one waits in the queue
		h.completed(tasks...)
		workers := map[string]bool{}
		for _, task := range tasks {
			workers[h.run(task).Attempt.WorkerID] = true
		}
		if len(workers) != 1 || h.count() != 2 {
			t.Errorf("got %d dispatchers after %d calls, want one that also takes the task of the second call", len(workers), h.count())
		}
		h.servers.Wait() // it ends without tasks
		h.completed(h.ask(1, 0))
		h.servers.Wait()
	})
}

func TestDeadDispatcherIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newCalled(t, 1, 1)
		task := h.ask(30, 0)
		h.ok(systemclock.Sleep(t.Context(), h.clock, 500*time.Millisecond)) // before the first token
		h.kills[1]()
		h.servers.Wait()
		first := h.run(task)
		if first.State != run.Running || first.Attempt.WorkerID == "" || first.Attempt.Replica != "r1" {
			t.Fatalf("got %s of %+v, want a running task of a dispatcher that is gone", first.State, first.Attempt)
		}
		// A sweep finds that its heartbeats have ended, and calls a dispatcher.
		began := h.clock.Now()
		h.ok(systemclock.Sleep(t.Context(), h.clock, time.Minute))
		beat, err := h.store.LastHeartbeat(t.Context(), first.Ref())
		h.ok(err)
		d, err := run.Decide(first, run.HeartbeatsChecked{Contact: run.Contact{
			LastAt: beat.At, Reception: run.Reception{Received: true, Since: began, Gap: time.Second},
		}}, h.clock.Now())
		h.ok(err)
		h.ok(h.store.Commit(t.Context(), port.WriteOf(d)))
		if lost := h.run(task); lost.State != run.Terminating || lost.Fault == nil || lost.Fault.Code != fault.HeartbeatTimeout {
			t.Fatalf("got %s with %v, want an attempt without heartbeats ended", lost.State, lost.Fault)
		}
		h.call(inferences.DispatchCall{Tenant: first.Tenant, Pool: first.Slot.Pool, Run: first.ID})
		h.completed(task)
		if r := h.run(task); r.Attempt.Number != 2 || r.Attempt.WorkerID == first.Attempt.WorkerID {
			t.Errorf("got %+v, want a second attempt of another dispatcher", r.Attempt)
		}
		h.servers.Wait()
	})
}

func TestLostCallIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newCalled(t, 1, 1)
		h.lose = true
		task := h.ask(1, 0)
		if r := h.run(task); r.State != run.ContainerCreating || h.count() != 0 {
			t.Fatalf("got %s after %d calls, want a task with a slot and without a dispatcher", r.State, h.count())
		}
		h.call(inferences.DispatchCall{Tenant: client.Tenant, Pool: "pool0"}) // for another task
		h.completed(task)
		h.servers.Wait()
	})
}

func TestTaskBehindTheEndIsLeftToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newCalled(t, 1, 2)
		first := h.ask(700, 12*time.Minute)
		h.ok(systemclock.Sleep(t.Context(), h.clock, 2*time.Minute))
		second := h.ask(700, 14*time.Minute)
		h.completed(first, second)
		if a, b := h.run(first).Attempt, h.run(second).Attempt; a.WorkerID == b.WorkerID || a.Number != 1 || b.Number != 1 {
			t.Errorf("got attempts %d and %d of %s and %s, want one of each of two dispatchers", a.Number, b.Number, a.WorkerID, b.WorkerID)
		}
		// The call of the task ends at once, because the seat is taken; the holder calls the next.
		if h.count() != 3 {
			t.Errorf("got %d calls, want 3", h.count())
		}
		h.servers.Wait()
	})
}

// TestDeadlineBeyondADispatcherIsOfTasksOnly has deadlines that a dispatcher cannot serve to their
// end: a caller cannot wait for them, and a task is served for as long as the dispatcher can.
func TestDeadlineBeyondADispatcherIsOfTasksOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newCalled(t, 1, 1)
		err := h.tasks.Call(t.Context(), &inferences.NewTask{
			Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "count"}, Within: 14*time.Minute + time.Millisecond,
		}, func(inferences.Accepted) error { return nil }, func([]inference.Event) error { return nil })
		f := fault.Of(err)
		if f == nil || f.Code != fault.DeadlineUnmet || f.Field != "deadline_ms" || f.Message != "840001 ms is out of range, want 1 to 840000, the limit of a request whose caller waits" {
			t.Errorf("got %v, want DEADLINE_UNMET with the field and the maximum", err)
		}
		task := h.ask(2000, 24*time.Hour)
		ended := h.ended(task, 20*time.Minute)
		if ended.State != run.Failed || ended.Fault.Code != fault.DeadlineUnmet || !strings.Contains(ended.Fault.Message, "14m0s") {
			t.Errorf("got %s with %+v, want DEADLINE_UNMET after 14 minutes", ended.State, ended.Fault)
		}
		h.servers.Wait()
	})
}

// TestDispatchersShareTheReplicas lets two dispatchers serve one pool: together they have no
// more requests on a replica than it has slots.
func TestDispatchersShareTheReplicas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newCalled(t, 4, 2)
		h.perServer = 4
		var tasks []string
		for i := range 16 {
			tasks = append(tasks, h.ask(5+i%3, 0))
			h.ok(systemclock.Sleep(t.Context(), h.clock, 600*time.Millisecond))
		}
		h.completed(tasks...)
		workers := map[string]bool{}
		for _, task := range tasks {
			workers[h.run(task).Attempt.WorkerID] = true
		}
		if len(workers) < 2 {
			t.Errorf("got %d dispatchers, want at least 2", len(workers))
		}
		for id, n := range maps.All(h.most) {
			if n > 2 {
				t.Errorf("got %d requests at one time on %s, want at most 2", n, id)
			}
		}
		h.servers.Wait()
	})
}

// TestCancelOfAnotherProcessEndsTheRequest cancels a task whose engine sends tokens, or has
// sent none yet: its slot is free at once, and its dispatcher closes the request when it next
// reads the slots.
func TestCancelOfAnotherProcessEndsTheRequest(t *testing.T) {
	t.Parallel()
	for name, stalls := range map[string]bool{"sending": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newCalled(t, 1, 1)
				if stalls {
					h.engines["r1"].FailNext(mockengine.FailStall, 0)
				}
				task := h.ask(600, 0)
				h.ok(systemclock.Sleep(t.Context(), h.clock, 5500*time.Millisecond))
				if _, err := h.tasks.Cancel(t.Context(), client, task, "enough"); err != nil {
					t.Fatal(err)
				}
				if r := h.ended(task, 2*time.Second); r.State != run.Cancelled {
					t.Errorf("got %s, want Cancelled", r.State)
				}
				h.ok(systemclock.Sleep(t.Context(), h.clock, time.Second))
				load, err := h.engines["r1"].Load(t.Context())
				h.ok(err)
				if *load.Running != 0 {
					t.Errorf("got %d requests at the engine, want 0", *load.Running)
				}
				h.servers.Wait()
			})
		})
	}
}

// randomHex returns n random bytes.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
