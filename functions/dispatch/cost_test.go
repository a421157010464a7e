package dispatch_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/functions/dispatch"
	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/prompts"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

// spent counts the request units of a process.
type spent struct {
	mu            sync.Mutex
	writes, reads float64
}

func (s *spent) consumed(_ string, wru, rru float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes += wru
	s.reads += rru
}

// TestTaskCosts counts the request units of a task of 500 tokens in 20 s with one reader, as
// the deployed functions serve it: the function that accepts it, a dispatcher that serves no
// other task, and the reader. The price of a task is computed from them: local/proof/cost.
func TestTaskCosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}}).AWS()
		if err := awsfake.CreateTable(t.Context(), config, "t"); err != nil {
			t.Fatal(err)
		}
		objects := fake.NewOutputs(clock.System{}, nil)
		settings := runs.Config{
			Policy: spec.Policy{RecordRetention: 48 * time.Hour, OutputRetention: 24 * time.Hour}, Pool: "default", MockEngine: true, MostWithin: dispatch.MostWithin,
		}
		discard := slog.New(slog.DiscardHandler)
		// process returns the records and the streams of a process, and its request units.
		process := func() (*dynamo.Store, *runs.Records, *dynamo.Answers, *spent) {
			used := &spent{}
			store, err := dynamo.Open(config, dynamo.Config{Table: "t", Clock: clock.System{}, Consumed: used.consumed})
			if err != nil {
				t.Fatal(err)
			}
			answers, err := dynamo.NewAnswers(store, dynamo.FeedConfig{Retention: 72 * time.Hour, WaitInterval: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			return store, runs.NewRecords(store, clock.System{}, discard), answers, used
		}
		// clients returns the use cases of a process for clients.
		clients := func(store *dynamo.Store, records *runs.Records, answers port.AnswerFeed, call inferences.CallDispatcher) *inferences.Inference {
			leave := runs.LeaveToSweep{}
			life := runs.NewLifecycle(records, runs.NoExecutions{}, leave, leave, inferences.NewCalls(call, discard), settings)
			models := artifacts.NewModels(store, clock.System{}, discard, api.ModelDocument, settings.ModelKeys)
			requests := runs.NewRequests(life, randomHex, runs.StreamsIn(answers), settings)
			return app.NewInference(requests, randomHex, answers, models, inferences.NoTranscripts{}, prompts.New(store, objects, clock.System{}), series.Discard, settings)
		}
		setup, _, _, _ := process()
		place := platform.EnginePlace{Kind: platform.EngineMock, Model: "mock", Slots: 1, Replicas: make([]platform.EngineReplica, 1)}.WithIDs()
		if err := setup.SavePool(t.Context(), platform.Pool{Tenant: "acme", ID: "pool0", Limit: 1, QueueLimit: 10, Engine: &place}); err != nil {
			t.Fatal(err)
		}
		const tokens, takes = 500, 20 * time.Second
		engine := mockengine.New(mockengine.Config{Clock: clock.System{}, Slots: 1, TokenEvery: takes / tokens})
		store, records, answers, accepting := process()
		serving := &spent{}
		var running sync.WaitGroup
		call := inferences.CallDispatcher(func(_ context.Context, call inferences.DispatchCall) error {
			seats, records, answers, used := process()
			serving = used
			models := artifacts.NewModels(seats, clock.System{}, discard, api.ModelDocument, settings.ModelKeys)
			transcripts := artifacts.NewRegistry(seats, objects, clock.System{}, discard, randomHex, settings.Policy.RecordRetention, settings.ArtifactLimit)
			d, _ := app.NewDispatcher(app.TasksOnly(records, settings), randomHex, answers, models, transcripts, prompts.New(seats, objects, clock.System{}), func(string, platform.EnginePlace, platform.EngineReplica) (port.Engine, error) {
				return engine, nil
			}, series.Discard, inferences.DispatcherConfig{ID: "dispatcher-" + randomHex(8), Batch: dispatch.Batch}, settings)
			running.Go(func() {
				err := d.ServePool(t.Context(), call, inferences.ServePoolConfig{Seats: seats, Tasks: dispatch.Tasks, End: time.Now().Add(14 * time.Minute)})
				if err != nil {
					t.Error(err)
				}
			})
			return nil
		})
		front := clients(store, records, answers, call)
		who := port.Identity{Tenant: "acme", Workspace: "w", Subject: "client"}
		accepted, err := front.Create(t.Context(), inferences.NewTask{
			Identity: who, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "tell a story"}, MaxTokens: tokens,
		})
		if err != nil {
			t.Fatal(err)
		}
		own, records, answers, reading := process()
		reader := clients(own, records, answers, call)
		got, began := 0, time.Now()
		err = reader.Follow(t.Context(), who, accepted.Run.TaskID, inference.EventID{}, func(run.Run) error { return nil }, func(events []inference.Event) error {
			for _, e := range events {
				if _, is := e.Data.(inference.Token); is {
					got++
				}
			}
			return nil
		})
		if took := time.Since(began); err != nil || got != tokens || took < takes || took > takes+2*time.Second {
			t.Fatalf("got %d tokens in %s, %v, want %d in %s", got, took, err, tokens, takes)
		}
		running.Wait()
		ended, err := setup.Find(t.Context(), "acme", accepted.Run.TaskID)
		if err != nil || ended.State != run.Completed {
			t.Fatalf("got %s, %v, want Completed", ended.State, err)
		}
		if ended.EventCount != 6 {
			t.Errorf("got %d events, want 6", ended.EventCount)
		}
		// The last number of reads depends on when the reader reads between the writes.
		for name, row := range map[string]struct {
			is            *spent
			writes, reads float64
			spare         float64
		}{
			"accepting": {accepting, 18, 19.5, 0}, "serving": {serving, 133, 82.5, 4}, "reading": {reading, 0, 154, 10},
		} {
			if math.Abs(row.is.writes-row.writes) > row.spare || math.Abs(row.is.reads-row.reads) > row.spare {
				t.Errorf("%s: got %g write units and %g read units, want %g and %g with at most %g more or less", name, row.is.writes, row.is.reads, row.writes, row.reads, row.spare)
			}
		}
	})
}

// randomHex returns n random bytes.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
