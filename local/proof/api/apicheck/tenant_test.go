package apicheck_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/platform"

	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Tokens of the tests: that of the owner of the runs, that of another tenant, and two that are
// no longer valid.
const (
	owner    = "token-of-the-owner"
	stranger = "token-of-a-stranger"
	revoked  = "token-that-is-revoked"
	expired  = "token-that-has-expired"
)

func without(s access.Scope) string { return "token-without-" + string(s) }
func alone(s access.Scope) string   { return "token-with-only-" + string(s) }

// unknownTask is a task id that does not exist.
const unknownTask = "export_mods_1_00000000"

// withTokens starts a server with all routes and the tokens of the tests.
func withTokens(t *testing.T) *apitest.Stage {
	t.Helper()
	stage, _, _ := withRecords(t)
	return stage
}

// withRecords is withTokens that also returns the token records, which a test can revoke, and
// the signer of tickets.
func withRecords(t *testing.T) (*apitest.Stage, *records, *grants.Tokens) {
	t.Helper()
	tokens := &records{all: []access.Token{
		access.Full("owner", owner, apitest.Tenant, "main"), access.Full("stranger", stranger, "tenant-b", "theirs"), access.Full("revoked", revoked, apitest.Tenant, "main"),
	}}
	old := access.Full("expired", expired, apitest.Tenant, "main")
	old.ExpiresAt = apitest.Began
	tokens.all = append(tokens.all, old)
	for _, s := range access.Scopes() {
		most, one := access.Full("", without(s), apitest.Tenant, "main"), access.Full("", alone(s), apitest.Tenant, "main")
		most.Scopes, one.Scopes = nil, []access.Scope{s}
		for _, other := range access.Scopes() {
			if other != s {
				most.Scopes = append(most.Scopes, other)
			}
		}
		tokens.all = append(tokens.all, most, one)
	}
	parts := apitest.NewParts(t)
	feed := fake.NewFeed(parts.Clock, time.Hour, nil, func(err error) { t.Error(err) })
	stream, err := streamtest.New(feed, apitest.Tenant, parts.Clock)
	if err == nil {
		err = stream.Add(t.Context(), false, eventtype.Accepted)
	}
	if err != nil {
		t.Fatal(err)
	}
	hooks := apitest.NewWebhooks(t, parts).Webhooks
	who := port.Identity{Tenant: apitest.Tenant, Workspace: "main"}
	if _, _, _, err := hooks.Create(t.Context(), who, delivery.WebhookSettings{URL: "https://127.0.0.1:1/"}, ownKey, ""); err != nil {
		t.Fatal(err)
	}
	tickets := grants.NewTokens(parts.Signer, parts.Clock, func(n int) string { return strings.Repeat("0", 2*n) })
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		return frontDoors(s, hooks, parts.Signer, parts.Store, feed, parts.Clock)
	}, func(s *apitest.Settings) {
		s.Server.Tokens, s.Server.Tickets = tokens, tickets.OpenTicket
		// No dispatcher serves the tasks.
		s.Tasks = app.CallTasks(feed, func(context.Context, inferences.DispatchCall) error { return nil })
	})
	return stage, tokens, tickets
}

// records is a TokenSource whose tokens can be revoked.
type records struct {
	mu  sync.Mutex
	all []access.Token
}

// Refused implements httpkit.TokenSource.
func (r *records) Refused() {}

// Current implements httpkit.TokenSource.
func (r *records) Current(context.Context) (tokens []access.Token, required bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all, true, nil
}

func (r *records) revoke(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(slices.Clone(r.all), func(t access.Token) bool { return t.Name == name })
}

// The ids of the owner's job and pool, and an id that does not exist.
const (
	ownJob      = "own-job"
	unknownJob  = "no-job"
	ownPool     = "own-pool"
	unknownPool = "no-pool"
)

// The idempotency key of the owner's webhook, and the ids of that webhook and of an unknown
// one.
const ownKey = "own"

var (
	ownWebhook     = webhook.ID(time.Time{}, "key", apitest.Tenant, ownKey)
	unknownWebhook = webhook.ID(time.Time{}, "unknown")
)

// The owner's artifact: its request, its id, and an unknown id.
const (
	ownDocument     = `{"kind":"note","content":null}`
	ownArtifact     = "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"
	unknownArtifact = "0000000000000000000000000000000000000000000000000000000000000000"
)

// The owner's model: its request, its id, and an unknown id.
const (
	ownModelRequest = `{"id":"own-model","engines":["vllm"]}`
	ownModel        = "own-model"
	unknownModel    = "no-model"
)

// The ids of the owner's session, and of an unknown one.
const ownSession, unknownSession = "own-session", "no-session"

// servedModel is the model of the owner's pool ownEngine. The catalog does not contain it.
const servedModel, ownEngine = "served-model", "own-engine"

// ofOpenAI has a request body for each path of the OpenAI API; it is empty for GET.
var ofOpenAI = map[string]string{
	"/v1/chat/completions": `{"model":"` + servedModel + `","messages":[{"role":"user","content":"a"}]}`,
	"/v1/completions":      `{"model":"` + servedModel + `","prompt":"a"}`,
	"/v1/embeddings":       `{"model":"` + servedModel + `","input":"a"}`,
	"/v1/rerank":           `{"model":"` + servedModel + `","query":"a","documents":["a"]}`,
	"/v1/responses":        `{"model":"` + servedModel + `","input":"a"}`,
	"/v1/models":           "",
	"/v1/models/{model}":   "",
}

// ownResponses has the id of the owner's background response, by *apitest.Stage.
var ownResponses sync.Map

const unknownResponse = "resp_0"

// completed creates a run of the owner with an output and a log, a job, a pool, and any other
// data that the operation needs.
func completed(t *testing.T, stage *apitest.Stage, op apicheck.Operation) (task string) {
	t.Helper()
	who := port.Identity{Tenant: apitest.Tenant, Workspace: "main"}
	if _, _, err := stage.System.Jobs.Put(t.Context(), who, ownJob, []byte(`{"image":"a","sensor":{"cloudEvent":{}}}`), change.Precondition{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := stage.System.Pools.Put(t.Context(), who, ownPool, pools.Definition{Limit: 1}, change.Precondition{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := stage.System.Artifacts.Create(t.Context(), who.Tenant, "", artifact.Draft{Kind: "note", Content: []byte("null")}); err != nil {
		t.Fatal(err)
	}
	d, err := api.ModelDefinition(contract.ModelSettings{Engines: []string{"vllm"}})
	if err == nil {
		_, _, err = stage.System.Models.Create(t.Context(), who, ownModel, d, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stage.Store.PutLimit(t.Context(), apitest.Tenant, budget.SessionScope(ownSession), budget.Limit{}, 0, apitest.Began); err != nil {
		t.Fatal(err)
	}
	_, front := ofOpenAI[op.Path]
	byID := strings.HasPrefix(op.Path, "/v1/responses/")
	if front || byID || op.Path == "/v1/tasks" && op.Method == http.MethodPost {
		engine := platform.EnginePlace{Kind: platform.EngineMock, Model: servedModel, Slots: 1, Replicas: []platform.EngineReplica{{ID: "r1"}}}
		pool := platform.Pool{Tenant: apitest.Tenant, ID: ownEngine, Limit: 1, Engine: &engine, Draining: front, CreatedAt: apitest.Began, UpdatedAt: apitest.Began}
		if err := stage.Store.SavePool(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	if byID {
		answer := stage.Call(t, http.MethodPost, "/v1/responses", `{"model":"`+servedModel+`","input":"a","background":true}`, "Authorization", "Bearer "+owner)
		ownResponses.Store(stage, decode[struct{ ID string }](t, answer).ID)
	}
	task = stage.Accept(t)
	stage.Start(t, task)
	stage.Write(t, task, "a line")
	stage.Succeed(t, task, "a.xml", "application/xml", "<a/>")
	return task
}

// bulkOfExports is the body of a bulk request.
const bulkOfExports = `{"filter":{"kind":"export"}}`

// call sends a valid request for an operation with a token.
func call(t *testing.T, stage *apitest.Stage, op apicheck.Operation, task, token string, headers ...string) apitest.Answer {
	t.Helper()
	return callWith(t, stage, op, op.Path, task, append(headers, "Authorization", "Bearer "+token)...)
}

// callWith is call with other credentials, and with a path that may have a query.
func callWith(t *testing.T, stage *apitest.Stage, op apicheck.Operation, path, task string, headers ...string) apitest.Answer {
	t.Helper()
	body := map[string]string{
		"POST /export/{format}": `{"pi":"` + apitest.PI + `"}`, "PUT /v1/jobs/{job_id}": `{"image":"a"}`, "PATCH /v1/jobs/{job_id}": `{}`,
		"POST /v1/jobs/{job_id}/events": `{"specversion":"1.0","id":"1","source":"/a","type":"b"}`,
		"POST /v1/runs":                 `{"image":"a"}`, "POST /v1/runs:plan": `{"jobId":"` + ownJob + `"}`,
		"PATCH /v1/tasks/{task_id}": `{"labels":{"a":"b"}}`, "PATCH /v1/runs/{run_id}": `{"labels":{"a":"b"}}`, "PATCH /v1/runs": strings.TrimSuffix(bulkOfExports, "}") + `,"labels":{"a":"b"}}`,
		"POST /v1/machines:report": `{"cluster":"a","machines":[{"runId":"` + task + `","attempt":1,"namespace":"a","machineId":"a.1"}]}`,
		"POST /v1/runs:cancel":     bulkOfExports, "POST /v1/runs:retry": bulkOfExports,
		"PUT /v1/pools/{pool_id}": `{"limit":1}`, "POST /v1/webhooks": `{"url":"https://127.0.0.1:1/"}`, "PATCH /v1/webhooks/{webhook_id}": `{}`,
		"POST /v1/webhooks/{webhook_id}/redeliver": `{"position":1}`, "POST /v1/events:replay": `{"from":"earliest","target":{"bus":true}}`,
		"POST /v1/artifacts": ownDocument, "POST /v1/tasks": `{"model_ref":"` + servedModel + `","prompt":"a"}`, "POST /v1/catalog/models": ownModelRequest, "PATCH /v1/catalog/models/{model_id}": `{}`,
		"POST /v1/catalog/models/{model_id}/state": `{"state":"Active"}`, "PUT /v1/budgets/{scope}": `{"tokens":7}`,
	}[op.Method+" "+op.Path]
	if of, ok := ofOpenAI[op.Path]; ok && op.Method == http.MethodPost {
		body = of
	}
	job, pool, hook, document, model, session := ownJob, ownPool, ownWebhook, ownArtifact, ownModel, ownSession
	response, _ := ownResponses.Load(stage)
	if task == unknownTask || response == nil {
		response = unknownResponse
	}
	if task == unknownTask {
		job, pool, hook, document, model, session = unknownJob, unknownPool, unknownWebhook, unknownArtifact, unknownModel, unknownSession
	}
	path = strings.NewReplacer(
		"{task_id}", task, "{run_id}", task, "{format}", "mods", "{job_id}", job, "{pool_id}", pool, "{webhook_id}", hook, "{version}", "1", "{artifact_id}", document, "{model_id}", model, "{session_id}", session, "{scope}", budget.ScopeTenant,
		"{response_id}", response.(string), "{model}", servedModel,
	).Replace(path)
	if strings.Contains(path, "{") {
		t.Fatalf("got the path %s, want a value of each of its parameters in this test", path)
	}
	if op.Path == "/v1/jobs/{job_id}/events" {
		headers = append(slices.Clone(headers), "Content-Type", "application/cloudevents+json")
	}
	return stage.Call(t, op.Method, path, body, headers...)
}

// otherTenant calls an operation with a token of another tenant. The response must be that for
// an unknown task, and nothing may change.
func otherTenant(t *testing.T, op apicheck.Operation) {
	t.Helper()
	stage := withTokens(t)
	task := completed(t, stage, op)
	if separate, ok := withoutTask[op.Method+" "+op.Path]; ok {
		separate(t, stage, op, task)
		return
	}
	if !strings.Contains(op.Path, "_id}") {
		t.Fatal("this operation names no task and no job: say in withoutTask how it separates tenants")
	}
	before := stage.Run(t, task)
	foreign, unknown := call(t, stage, op, task, stranger), call(t, stage, op, unknownTask, stranger)
	if foreign.Status != http.StatusNotFound {
		t.Errorf("another tenant's task: got %d %s, want 404", foreign.Status, foreign.Body)
	}
	if strings.HasPrefix(op.Path, "/v1/responses/") { // errors of that API contain nothing that changes
		if foreign.Body != unknown.Body {
			t.Errorf("got %s for an unknown response and %s for another tenant's", unknown.Body, foreign.Body)
		}
	} else if op.Method != http.MethodHead {
		if diff := cmp.Diff(constant(t, unknown), constant(t, foreign)); diff != "" {
			t.Errorf("got other responses for an unknown task (-) and another tenant's (+):\n%s", diff)
		}
	}
	if diff := cmp.Diff(before, stage.Run(t, task)); diff != "" {
		t.Errorf("got a changed run:\n%s", diff)
	}
	if answer := call(t, stage, op, task, owner); !succeeds(op, answer) {
		t.Errorf("own task: got %d %s, want a success", answer.Status, answer.Body)
	}
}

// succeeds reports whether the caller was authorized: the expected error counts, because no
// pool has an engine.
func succeeds(op apicheck.Operation, answer apitest.Answer) bool {
	if op.Path == "/v1/pools/{pool_id}/reload" {
		return answer.Status == http.StatusConflict && strings.Contains(answer.Body, `"NO_ENGINE"`)
	}
	if op.Path == "/v1/tasks/{task_id}/stream" { // the task is an export
		return answer.Status == http.StatusConflict && (op.Method == http.MethodHead || strings.Contains(answer.Body, `"NOT_STREAMABLE"`))
	}
	if ofOpenAI[op.Path] != "" { // the pool is draining, because no dispatcher would answer
		return answer.Status == http.StatusServiceUnavailable && strings.Contains(answer.Body, `"pool_unready"`)
	}
	if op.Path == "/v1/events/ws" {
		return answer.Status == http.StatusUpgradeRequired
	}
	return answer.Status < http.StatusMultipleChoices
}

// noEvents checks that the response contains no event. TestTicketIsForItsTenant in
// functions/stream follows the streams of two tenants.
func noEvents(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
	t.Helper()
	for _, token := range []string{owner, stranger} {
		if answer := call(t, stage, op, "", token); !succeeds(op, answer) || strings.Contains(answer.Body, "urn:orch") {
			t.Errorf("%s: got %d %s, want no event", token, answer.Status, answer.Body)
		}
	}
}

// constant returns the parts of a problem that do not depend on the requested id.
func constant(t *testing.T, answer apitest.Answer) contract.Problem {
	t.Helper()
	p := decode[contract.Problem](t, answer)
	p.Instance, p.CorrelationID = "", ""
	p.Detail = strings.NewReplacer(ownJob, unknownJob, ownPool, unknownPool).Replace(p.Detail)
	return p
}

func decode[T any](t *testing.T, answer apitest.Answer) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(answer.Body), &v); err != nil {
		t.Fatalf("got %s: %v", answer.Body, err)
	}
	return v
}
