package inference_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/inference"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/platform"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// setup serves the routes with a pool of a mock engine for one task and a queue for one more.
// No dispatcher runs.
func setup(t *testing.T, change ...func(*apitest.Settings)) *apitest.Stage {
	t.Helper()
	parts := apitest.NewParts(t)
	db, err := sqlitetest.Open(t.Context(), filepath.Join(sqlitetest.Folder(t), "feed.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	feed, err := sqlite.NewFeed(t.Context(), db, sqlite.FeedConfig{Clock: parts.Clock, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	mock := mockengine.New(mockengine.Config{Clock: parts.Clock})
	serve := func(s *apitest.Settings) {
		s.Tasks = app.ServeTasks(feed, func(string, platform.EnginePlace, platform.EngineReplica) (port.Engine, error) {
			return mock, nil
		}, inferences.DispatcherConfig{ID: "dispatcher", Alone: true})
	}
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		return append(inference.Routes(s.Inference, parts.Clock), inference.BudgetRoutes(s.Budgets, parts.Clock)...)
	}, append(change, serve)...)
	place := platform.EnginePlace{Kind: platform.EngineMock, Model: "mock", Slots: 1, Replicas: make([]platform.EngineReplica, 1)}.WithIDs()
	pool := platform.Pool{Tenant: apitest.Tenant, ID: "pool0", Limit: 1, QueueLimit: 1, Engine: &place, CreatedAt: apitest.Began, UpdatedAt: apitest.Began}
	if err := stage.Store.SavePool(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return stage
}

func TestRefusalsOfTasks(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for _, row := range []struct {
		body, code, field string
		status            int
		headers           []string
	}{
		{body: `{"model_ref":"mock"}`, status: 400, code: "INVALID_REQUEST", field: "prompt"},
		{body: `{"prompt":"a"}`, status: 400, code: "INVALID_REQUEST", field: "model_ref"},
		{body: `{"model_ref":"mock","prompt":"a","labels":{"-team":"data"}}`, status: 400, code: "INVALID_REQUEST", field: "labels.-team"},
		{body: `{"model_ref":"mock","prompt":"a","labels":{"team":"a\u0000"}}`, status: 400, code: "INVALID_REQUEST", field: "labels.team"},
		{body: `{"model_ref":"mock","prompt":"a","max_token":1}`, status: 400, code: "INVALID_REQUEST", field: "max_token"},
		{body: `{"model_ref":"mock","prompt":"a","ctx":-1}`, status: 400, code: "INVALID_PARAMS", field: "ctx"},
		{body: `{"model_ref":"mock","prompt":"a","max_tokens":0}`, status: 400, code: "INVALID_PARAMS", field: "max_tokens"},
		{body: `{"model_ref":"mock","prompt":"a","max_tokens":32769}`, status: 400, code: "INVALID_PARAMS", field: "max_tokens"},
		{body: `{"model_ref":"mock","prompt":"a","expected_tokens":-1}`, status: 400, code: "INVALID_PARAMS", field: "expected_tokens"},
		{body: `{"model_ref":"mock","prompt":"a","stop":["b",""]}`, status: 400, code: "INVALID_REQUEST", field: "stop.1"},
		{body: `{"model_ref":"mock","prompt":"a","engine":"x"}`, status: 400, code: "INVALID_REQUEST", field: "engine"},
		{body: `{"model_ref":"mock","messages":[{"role":"user","content":""},{"role":"user"}]}`, status: 400, code: "INVALID_REQUEST", field: "messages.1.content"},
		{body: `{"model_ref":"mock","prompt":"a","deadline_ms":0}`, status: 400, code: "DEADLINE_UNMET", field: "deadline_ms"},
		{body: `{"model_ref":"mock","prompt":"a"}`, status: 400, code: "DEADLINE_UNMET", field: "X-Deadline-Ms", headers: []string{"X-Deadline-Ms", "0"}},
		{body: `{"model_ref":"mock","prompt":"a"}`, status: 400, code: "DEADLINE_UNMET", field: "X-Deadline-Ms", headers: []string{"X-Deadline-Ms", "86400001"}},
		{body: `{"model_ref":"mock","prompt":"a"}`, status: 400, code: "DEADLINE_UNMET", field: "X-Deadline-Ms", headers: []string{"X-Deadline-Ms", "1s"}},
		{body: `{"model_ref":"mock","prompt":"a","deadline_ms":86400001}`, status: 400, code: "DEADLINE_UNMET", field: "deadline_ms"},
		{body: `{"model_ref":"mock","prompt":"a"}`, status: 400, code: "UNTRUSTED_ARTIFACT", headers: []string{"X-Trust-Policy", "strict"}},
		{body: `{"model_ref":"mock","prompt":"a"}`, status: 400, code: "INVALID_REQUEST", field: "X-Trust-Policy", headers: []string{"X-Trust-Policy", "loose"}},
		{body: `{"model_ref":"other","prompt":"a"}`, status: 404, code: "MODEL_UNKNOWN"},
		{body: `{"model_ref":"mock","ctx":10,"prompt":"` + strings.Repeat("a", 50) + `"}`, status: 400, code: "INVALID_PARAMS", field: "prompt"},
		{body: `{"model_ref":"mock","prompt":"a","expected_tokens":1000000}`, status: 429, code: "QUEUE_FULL_DROP_LRU"},
		{body: `{"model_ref":"mock","prompt":"cause-internal"}`, status: 500, code: "INTERNAL"},
		{body: `{"model_ref":"pool-unavailable","prompt":"a"}`, status: 503, code: "POOL_UNAVAILABLE"},
		{body: `{"model_ref":"mock","prompt":"a","engine":"vllm"}`, status: 503, code: "POOL_UNAVAILABLE"},
	} {
		p, header := apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/tasks", row.body, row.status, row.headers...)
		if p.Code != row.code || p.Field != row.field {
			t.Errorf("%.80s: got %s of field %q (%s), want %s of field %q", row.body, p.Code, p.Field, p.Detail, row.code, row.field)
		}
		if backoff := header.Get("X-Backoff-Ms"); (row.status == 429) != (p.PolicyLabel == "reject" && p.RetryAfterMS == 1000 && p.Retriable != nil && *p.Retriable) ||
			(row.status == 429 || row.status == 503) != (backoff == "1000" && header.Get("Retry-After") == "1") {
			t.Errorf("%.80s: got %+v with backoff %s", row.body, p, backoff)
		}
	}
	pool, err := stage.Store.LoadPool(t.Context(), platform.PoolRef{Tenant: apitest.Tenant, ID: "pool0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, draining := range []bool{true, false} {
		pool.Draining = draining
		if err := stage.Store.SavePool(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		pool.Version++
		if !draining {
			continue
		}
		if p, header := apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/tasks", `{"model_ref":"mock","prompt":"a"}`, 503); p.Code != "POOL_UNREADY" || header.Get("Retry-After") != "1" {
			t.Errorf("got %+v of a draining pool, want POOL_UNREADY", p)
		}
	}
	first, _ := apitest.Decoded[contract.TaskAccepted](t, stage, "POST", "/v1/tasks", `{"model_ref":"mock","prompt":"a"}`, 202)
	second, header := apitest.Decoded[contract.TaskAccepted](t, stage, "POST", "/v1/tasks", `{"model_ref":"mock","prompt":"a"}`, 202, "Idempotency-Key", "k")
	if first.QueuePosition != 0 || header.Get("Location") != "/v1/tasks/"+second.TaskID {
		t.Errorf("got %+v, then %+v at %s", first, second, header.Get("Location"))
	}
	if again, _ := apitest.Decoded[contract.TaskAccepted](t, stage, "POST", "/v1/tasks", `{"model_ref":"mock","prompt":"a"}`, 200, "Idempotency-Key", "k"); again.TaskID != second.TaskID {
		t.Errorf("got task %s for a known key, want %s", again.TaskID, second.TaskID)
	}
	apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/tasks", `{"model_ref":"mock","prompt":"b"}`, 422, "Idempotency-Key", "k")
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/tasks", `{"model_ref":"mock","prompt":"a"}`, 429); p.Code != "ADMISSION_REJECT" {
		t.Errorf("got %+v of a full queue, want ADMISSION_REJECT", p)
	}
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/tasks/"+stage.Accept(t)+"/stream", "", 409); p.Code != "NOT_STREAMABLE" {
		t.Errorf("got %+v for an export, want NOT_STREAMABLE", p)
	}
	apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/tasks/inf_unknown/stream", "", 404)
}
