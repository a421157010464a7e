package apicheck_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// withoutTask has a check for each operation without a task in its path.
var withoutTask = map[string]func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, task string){
	"POST /export/{format}": separateKeys,
	"POST /v1/runs":         separateKeys,
	"POST /v1/tasks": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: http.StatusAccepted, stranger: http.StatusNotFound} { // the stranger has no pool with the model
			if answer := call(t, stage, op, "", token); answer.Status != want {
				t.Errorf("%s: got %d %s, want %d", token, answer.Status, answer.Body, want)
			}
		}
	},
	"POST /v1/chat/completions": separateModels, "POST /v1/completions": separateModels, "POST /v1/embeddings": separateModels, "POST /v1/rerank": separateModels,
	"POST /v1/responses": separateResponses,
	"GET /v1/models/{model}": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: http.StatusOK, stranger: http.StatusNotFound} {
			if answer := call(t, stage, op, "", token); answer.Status != want {
				t.Errorf("%s: got %d %s, want %d", token, answer.Status, answer.Body, want)
			}
		}
	},
	"GET /v1/models": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]bool{owner: true, stranger: false} {
			if answer := call(t, stage, op, "", token); answer.Status != http.StatusOK || strings.Contains(answer.Body, servedModel) != want {
				t.Errorf("%s: got %d %s, want the own model %t", token, answer.Status, answer.Body, want)
			}
		}
	},
	"GET /v1/events": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: 1, stranger: 0} {
			if page := decode[contract.EventPage](t, call(t, stage, op, "", token)); len(page.Events) != want {
				t.Errorf("%s: got %d events, want %d", token, len(page.Events), want)
			}
		}
	},
	"POST /v1/events:replay": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: http.StatusAccepted, stranger: http.StatusUnprocessableEntity} { // the stranger has no events
			if answer := call(t, stage, op, "", token, "Idempotency-Key", "same"); answer.Status != want {
				t.Errorf("%s: got %d %s, want %d", token, answer.Status, answer.Body, want)
			}
		}
	},
	"GET /v1/events/stream": noEvents, "GET /v1/events/ws": noEvents, "POST /v1/events/tickets": noEvents,
	// TestReportOfAnotherMachineIsUnknown in shared/app/runs reports the machine of a run.
	"POST /v1/machines:report": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, task string) {
		t.Helper()
		before := stage.Run(t, task)
		if answer := call(t, stage, op, task, stranger); !strings.Contains(answer.Body, `"unknown"`) {
			t.Errorf("got %d %s, want an unknown machine", answer.Status, answer.Body)
		}
		if diff := cmp.Diff(before, stage.Run(t, task)); diff != "" {
			t.Errorf("got a changed run:\n%s", diff)
		}
	},
	"GET /metrics": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, task string) {
		t.Helper()
		// The operation serves all tenants under a separate scope, and returns no task.
		if answer := call(t, stage, op, task, owner); answer.Status != http.StatusOK || strings.Contains(answer.Body, task) {
			t.Errorf("got %d %s, want no task", answer.Status, answer.Body)
		}
	},
	"PUT /v1/jobs/{job_id}": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		if answer := call(t, stage, op, "", stranger); answer.Status != http.StatusCreated {
			t.Errorf("got %d %s for an id of another tenant, want 201", answer.Status, answer.Body)
		}
		if answer := call(t, stage, apicheck.Operation{Method: http.MethodDelete, Path: op.Path}, "", stranger); answer.Status != http.StatusNoContent {
			t.Errorf("got %d %s for a delete of the own job, want 204", answer.Status, answer.Body)
		}
		if answer := call(t, stage, apicheck.Operation{Method: http.MethodGet, Path: op.Path}, "", owner); answer.Status != http.StatusOK {
			t.Errorf("got %d %s for the owner's job, want 200", answer.Status, answer.Body)
		}
	},
	"GET /v1/jobs": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: 1, stranger: 0} {
			if list := decode[contract.JobList](t, call(t, stage, op, "", token)); len(list.Jobs) != want {
				t.Errorf("%s: got %+v, want %d jobs", token, list, want)
			}
		}
	},
	// TestFiguresAreThoseOfTheTenant in shared/app/activity has runs in a tenant. The event here is
	// not the first of its run.
	"GET /v1/activity": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for _, token := range []string{owner, stranger} {
			if a := decode[contract.Activity](t, call(t, stage, op, "", token)); a.Runs.Created != 0 || !a.Complete {
				t.Errorf("%s: got %+v, want no runs", token, a.Runs)
			}
		}
	},
	"GET /v1/budgets/{scope}": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for key, want := range map[string]int{"key": http.StatusNotFound, "key:owner@total": http.StatusBadRequest} {
			if answer := callWith(t, stage, op, "/v1/budgets/"+key, "", "Authorization", "Bearer "+stranger); answer.Status != want {
				t.Errorf("%s: got %d %s, want %d", key, answer.Status, answer.Body, want)
			}
		}
		put := apicheck.Operation{Method: http.MethodPut, Path: op.Path}
		if answer := call(t, stage, put, "", owner); answer.Status != http.StatusOK {
			t.Fatalf("got %d %s, want 200", answer.Status, answer.Body)
		}
		if b := decode[contract.Budget](t, call(t, stage, op, "", stranger)); b.Limit.Tokens != nil || b.Version != 0 {
			t.Errorf("got %+v of another tenant, want no limit", b)
		}
		if b := decode[contract.Budget](t, call(t, stage, op, "", owner)); b.Limit.Tokens == nil || *b.Limit.Tokens != 7 || b.Version != 1 {
			t.Errorf("got %+v, want the owner's limit", b)
		}
	},
	"GET /v1/usage": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		stage.Charge(t, apitest.Tenant, "own-model", "own-key", "own-session", run.Generation{TokensIn: 3, TokensOut: 2, Finish: "stop"}, apitest.Began)
		for token, want := range map[string]int64{owner: 1, stranger: 0} {
			for _, query := range []string{"", "?by=", "?by=day,model,key,session", "?by=session&limit=1"} {
				path := op.Path + query
				u := decode[contract.Usage](t, callWith(t, stage, op, path, "", "Authorization", "Bearer "+token))
				if u.Total.Tasks != want || len(u.Rows) != int(want) {
					t.Errorf("%s%s: got %+v, want the usage of %d tasks", token, path, u, want)
				}
				sheet := callWith(t, stage, op, path, "", "Authorization", "Bearer "+token, "Accept", "text/csv")
				if lines := strings.Count(sheet.Body, "\n"); sheet.Status != http.StatusOK || lines != 1+int(want) || token == stranger && strings.Contains(sheet.Body, "own-") {
					t.Errorf("%s%s: got %d %s, want %d rows", token, path, sheet.Status, sheet.Body, want)
				}
			}
		}
	},
	"PUT /v1/budgets/{scope}": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		if answer := call(t, stage, op, "", stranger); answer.Status != http.StatusOK {
			t.Errorf("got %d %s for the own tenant, want 200", answer.Status, answer.Body)
		}
		if b := decode[contract.Budget](t, call(t, stage, apicheck.Operation{Method: http.MethodGet, Path: op.Path}, "", owner)); b.Version != 0 {
			t.Errorf("got %+v for the owner's budget, want it unchanged", b)
		}
		for _, key := range []string{"key", "key:owner@total", "rate:owner@2026-01-01T00:00"} { // limits of tokens
			for _, token := range []string{owner, stranger} {
				answer := callWith(t, stage, op, "/v1/budgets/"+key, `{"cost_nanodollars":7}`, "Authorization", "Bearer "+token)
				if answer.Status != http.StatusBadRequest {
					t.Errorf("%s: got %d %s, want 400", key, answer.Status, answer.Body)
				}
			}
		}
	},
	"PUT /v1/pools/{pool_id}": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		if answer := call(t, stage, op, "", stranger); answer.Status != http.StatusCreated {
			t.Errorf("got %d %s for an id of another tenant, want 201", answer.Status, answer.Body)
		}
		own := call(t, stage, apicheck.Operation{Method: http.MethodGet, Path: op.Path}, "", owner)
		if p := decode[contract.Pool](t, own); p.Version != 1 {
			t.Errorf("got %+v for the owner's pool, want it unchanged", p)
		}
	},
	"GET /v1/pools": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: 2, stranger: 1} {
			if list := decode[contract.PoolList](t, call(t, stage, op, "", token)); len(list.Pools) != want {
				t.Errorf("%s: got %+v, want %d pools", token, list, want)
			}
		}
	},
	"POST /v1/runs:plan": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: http.StatusOK, stranger: http.StatusNotFound} {
			if answer := call(t, stage, op, "", token); answer.Status != want {
				t.Errorf("%s: got %d %s for a plan of the owner's job, want %d", token, answer.Status, answer.Body, want)
			}
		}
	},
	"POST /v1/artifacts": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: http.StatusOK, stranger: http.StatusCreated} {
			if answer := call(t, stage, op, "", token); answer.Status != want {
				t.Errorf("%s: got %d %s for the owner's content, want %d", token, answer.Status, answer.Body, want)
			}
		}
	},
	"GET /v1/artifacts": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: 1, stranger: 0} {
			if list := decode[contract.ArtifactList](t, call(t, stage, op, "", token)); len(list.Artifacts) != want {
				t.Errorf("%s: got %+v, want %d artifacts", token, list, want)
			}
		}
	},
	"GET /v1/capabilities": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		who := port.Identity{Tenant: apitest.Tenant}
		engine := platform.EnginePlace{Kind: platform.EngineVLLM, Model: ownModel, Slots: 2, Replicas: []platform.EngineReplica{{ID: "a", URL: "https://engine.example"}}}
		if _, _, err := stage.System.Pools.Put(t.Context(), who, "engines", pools.Definition{Engine: &engine, Limit: 2}, change.Precondition{}); err != nil {
			t.Fatal(err)
		}
		for token, want := range map[string]int{owner: 1, stranger: 0} {
			if found := decode[contract.Capabilities](t, call(t, stage, op, "", token)); len(found.Engines) != want {
				t.Errorf("%s: got %+v, want %d engines", token, found, want)
			}
		}
	},
	"POST /v1/catalog/models": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: http.StatusOK, stranger: http.StatusCreated} {
			if answer := call(t, stage, op, "", token); answer.Status != want {
				t.Errorf("%s: got %d %s for the owner's model, want %d", token, answer.Status, answer.Body, want)
			}
		}
	},
	"GET /v1/catalog/models": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: 1, stranger: 0} {
			if list := decode[contract.ModelList](t, call(t, stage, op, "", token)); len(list.Models) != want {
				t.Errorf("%s: got %+v, want %d models", token, list, want)
			}
		}
	},
	"POST /v1/webhooks": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		// The owner has used the key for another request.
		for token, want := range map[string]int{owner: http.StatusUnprocessableEntity, stranger: http.StatusCreated} {
			if answer := call(t, stage, op, "", token, "Idempotency-Key", ownKey); answer.Status != want {
				t.Errorf("%s: got %d %s for the owner's key, want %d", token, answer.Status, answer.Body, want)
			}
		}
	},
	"GET /v1/webhooks": func(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
		t.Helper()
		for token, want := range map[string]int{owner: 1, stranger: 0} {
			if list := decode[contract.WebhookList](t, call(t, stage, op, "", token)); len(list.Webhooks) != want {
				t.Errorf("%s: got %+v, want %d webhooks", token, list, want)
			}
		}
	},
	"GET /v1/tasks":        separateLists,
	"GET /v1/runs":         separateLists,
	"POST /v1/runs:cancel": separateBulk,
	"PATCH /v1/runs":       separateBulk,
	"POST /v1/runs:retry":  separateBulk,
}

// separateBulk checks that a bulk request does not change runs of another tenant.
func separateBulk(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
	t.Helper()
	own := map[string]bool{stage.Accept(t): true, stage.Failure(t, "no"): true}
	selected := 1
	if op.Method == http.MethodPatch { // labels of runs in any state
		selected = len(own)
	}
	for token, want := range map[string]int{stranger: 0, owner: selected} {
		answer := decode[contract.BulkAnswer](t, call(t, stage, op, "", token))
		if len(answer.Runs) < want || want == 0 && len(answer.Runs) > 0 || want == 1 && !own[answer.Runs[0].TaskID] {
			t.Errorf("%s: got %+v, want %d of the owner's runs", token, answer.Runs, want)
		}
	}
}

// separateLists checks that a list contains no runs of another tenant.
func separateLists(t *testing.T, stage *apitest.Stage, op apicheck.Operation, task string) {
	t.Helper()
	stage.Accept(t)
	own := decode[contract.TaskList](t, call(t, stage, apicheck.Operation{Method: op.Method, Path: op.Path + "?limit=1"}, "", owner))
	if len(own.Tasks) != 1 || own.NextCursor == "" {
		t.Fatalf("got %+v for the owner, want a first page", own)
	}
	for _, query := range []string{"", "?state=Completed", "?cursor=" + own.NextCursor} {
		answer := call(t, stage, apicheck.Operation{Method: op.Method, Path: op.Path + query}, "", stranger)
		if list := decode[contract.TaskList](t, answer); answer.Status == http.StatusOK && (len(list.Tasks) != 0 || list.NextCursor != "") {
			t.Errorf("%q: got %+v for another tenant, want an empty list; the owner's task is %s", query, list, task)
		}
	}
}

// separateKeys checks that the idempotency keys of two tenants are independent.
func separateKeys(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
	t.Helper()
	tasks := map[string]bool{}
	for _, token := range []string{owner, stranger, owner} {
		answer := call(t, stage, op, "", token, "Idempotency-Key", "the same")
		if answer.Status >= http.StatusMultipleChoices {
			t.Fatalf("%s: got %d %s, want a task", token, answer.Status, answer.Body)
		}
		tasks[decode[contract.ExportAccepted](t, answer).TaskID+decode[contract.RunAccepted](t, answer).TaskID] = true // only one of them is set
	}
	if len(tasks) != 2 {
		t.Errorf("got the tasks %v for one key of two tenants, want one of each", tasks)
	}
	theirs := call(t, stage, apicheck.Operation{Method: http.MethodGet, Path: "/v1/tasks"}, "", stranger)
	for _, task := range decode[contract.TaskList](t, theirs).Tasks {
		if r, err := stage.Store.Find(t.Context(), "tenant-b", task.TaskID); err != nil || r.Tenant != "tenant-b" || r.Workspace != "theirs" {
			t.Errorf("got the run of %s/%s, %v, want tenant-b/theirs", r.Tenant, r.Workspace, err)
		}
	}
}

// separateModels checks that only the owner can use the model, whose pool is draining.
func separateModels(t *testing.T, stage *apitest.Stage, op apicheck.Operation, _ string) {
	t.Helper()
	for token, want := range map[string]string{owner: `"pool_unready"`, stranger: `"model_not_found"`} {
		if answer := call(t, stage, op, "", token); !strings.Contains(answer.Body, want) {
			t.Errorf("%s: got %d %s, want %s", token, answer.Status, answer.Body, want)
		}
	}
}

// separateResponses is separateModels, and continues a response of the owner with the token of each
// tenant. The response has not ended.
func separateResponses(t *testing.T, stage *apitest.Stage, op apicheck.Operation, task string) {
	t.Helper()
	separateModels(t, stage, op, task)
	pool, err := stage.Store.LoadPool(t.Context(), platform.PoolRef{Tenant: apitest.Tenant, ID: ownEngine})
	if err == nil {
		pool.Draining = false
		err = stage.Store.SavePool(t.Context(), pool)
	}
	if err != nil {
		t.Fatal(err)
	}
	ask := func(token, members string) apitest.Answer {
		return stage.Call(t, http.MethodPost, op.Path, `{"model":"`+servedModel+`","input":"a","background":true`+members+`}`, "Authorization", "Bearer "+token)
	}
	first := decode[struct{ ID string }](t, ask(owner, ""))
	for token, want := range map[string]string{owner: "has not ended", stranger: `"previous_response_not_found"`, alone(access.RunsWrite): "runs:read"} {
		if answer := ask(token, `,"previous_response_id":"`+first.ID+`"`); !strings.Contains(answer.Body, want) {
			t.Errorf("%s: got %d %s, want %s", token, answer.Status, answer.Body, want)
		}
	}
}
