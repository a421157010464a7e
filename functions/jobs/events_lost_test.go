package jobs_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// unsure is a store that loses some calls of Create: it reports a failure, and has applied the call
// or has not.
type unsure struct {
	port.Store
	lost, applied atomic.Int32
}

// Create implements port.RunStore.
func (s *unsure) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	if s.lost.Add(-1) >= 0 {
		return nil, fault.New(fault.Unavailable, "not applied")
	}
	existing, err := s.Store.Create(ctx, first, key, with...)
	if err == nil && s.applied.Add(-1) >= 0 {
		return nil, fault.New(fault.Unavailable, "applied")
	}
	return existing, err
}

// TestEventAfterALostCommitHasOneRun repeats an event until it is taken.
func TestEventAfterALostCommitHasOneRun(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	store := &unsure{Store: parts.Store}
	parts.Store = store
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		return append(jobs.Routes(s.Jobs, s.Queries, s.Explanations), tasks.Routes(s.Queries, s.Runs, s.Logs, tasks.Keys{Tokens: parts.Signer, Events: fake.NewEventKeys(nil)}, "")...)
	})
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, takesEvents, 201)
	for name, fail := range map[string]*atomic.Int32{"1": &store.lost, "2": &store.applied} {
		fail.Store(1)
		status := 0
		for range 3 {
			if status = stage.Call(t, "POST", path+"/events", eventOf(name, "order.paid"), "Content-Type", structured).Status; status < 300 {
				break
			}
			if status != 503 {
				t.Fatalf("got %d for a lost commit, want 503", status)
			}
		}
		if status >= 300 {
			t.Errorf("got %d for the repeated event, want its run", status)
		}
	}
	listed, _ := apitest.Decoded[contract.JobRuns](t, stage, "GET", path+"/runs", "", 200)
	if len(listed.Runs) != 2 {
		t.Errorf("got %d runs, want one for each event", len(listed.Runs))
	}
}

// TestEventsInDynamoDB sends a large event, and then again at once, to the store of deployments.
func TestEventsInDynamoDB(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	config := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: parts.Clock}).AWS()
	if err := awsfake.CreateTable(t.Context(), config, "sortie"); err != nil {
		t.Fatal(err)
	}
	store, err := dynamo.Open(config, dynamo.Config{Table: "sortie", Clock: parts.Clock})
	if err != nil {
		t.Fatal(err)
	}
	parts.Store = store
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		return append(jobs.Routes(s.Jobs, s.Queries, s.Explanations), tasks.Routes(s.Queries, s.Runs, s.Logs, tasks.Keys{Tokens: parts.Signer, Events: fake.NewEventKeys(nil)}, "")...)
	})
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, takesEvents, 201)
	large := strings.Replace(eventOf("1", "order.paid"), `{"a": 1}`, `"`+strings.Repeat("x<", 10_000)+`"`, 1)
	first := sendEvents(t, stage, structured, large, 202)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			stage.Call(t, "POST", path+"/events", large, "Content-Type", structured)
			stage.Call(t, "POST", path+"/events", eventOf("2", "order.paid"), "Content-Type", structured)
		})
	}
	wait.Wait()
	listed, _ := apitest.Decoded[contract.JobRuns](t, stage, "GET", path+"/runs", "", 200)
	if len(listed.Runs) != 2 {
		t.Fatalf("got %d runs, want one for each event", len(listed.Runs))
	}
	r, err := store.Load(t.Context(), run.Ref{Tenant: apitest.Tenant, ID: first[0].RunID})
	if err != nil || r.Event == nil || !strings.Contains(string(r.Event.Document), `"id":"1"`) || len(r.Event.Document) < 20_000 || len(r.Event.Document) > 21_000 {
		t.Errorf("got an event that differs, %v, want the whole one without escapes", err)
	}
}
