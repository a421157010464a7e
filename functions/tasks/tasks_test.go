package tasks_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func setup(t *testing.T) *apitest.Stage {
	t.Helper()
	parts := apitest.NewParts(t)
	return apitest.New(t, parts, routes(parts.Signer))
}

// routes returns the routes under test.
func routes(signer port.Signer) func(*app.System) []httpkit.Route {
	return func(s *app.System) []httpkit.Route {
		return slices.Concat(tasks.Routes(s.Queries, s.Runs, s.Logs, tasks.Keys{Tokens: signer, Events: fake.NewEventKeys(nil)}, "v1.2.3"), tasks.ReportRoutes(s.Reports), tasks.RedeliveryRoutes(s.Queries, s.Redeliveries))
	}
}

func get[T any](t *testing.T, stage *apitest.Stage, path string) T {
	t.Helper()
	v, _ := apitest.Decoded[T](t, stage, http.MethodGet, path, "", http.StatusOK)
	return v
}

func TestTask(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	done := get[contract.Task](t, stage, "/v1/tasks/"+stage.Success(t, "a.xml", "application/xml", "<a/>"))
	if done.State != "Completed" || done.Output == nil || done.Output.Size != 4 || done.Machine == nil || done.CorrelationID != "of-the-test" {
		t.Errorf("got task %+v, want a completed task with an output of 4 bytes", done)
	}
	failed := get[contract.Task](t, stage, "/v1/tasks/"+stage.Failure(t, "no manifest"))
	if failed.State != "Failed" || failed.Fault == nil || failed.Fault.Blame != "worker" || failed.FailedAttempts != 1 {
		t.Errorf("got task %+v, want a failed task with a fault of the worker", failed)
	}
	if answer := stage.Call(t, http.MethodGet, "/v1/tasks/none", ""); answer.Status != http.StatusNotFound {
		t.Errorf("got %d for an unknown task, want 404", answer.Status)
	}
}

func TestPagesHaveEveryTaskOnce(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	var made []string
	for range 7 {
		made = append(made, stage.Accept(t))
		stage.Clock.Advance(time.Second)
	}
	slices.Reverse(made)
	var listed []string
	path := "/v1/tasks?limit=3"
	for pages := 1; ; pages++ {
		page := get[contract.TaskList](t, stage, path)
		for _, task := range page.Tasks {
			listed = append(listed, task.TaskID)
		}
		if page.NextCursor == "" {
			if pages != 3 {
				t.Errorf("got %d pages, want 3", pages)
			}
			break
		}
		path = "/v1/tasks?limit=3&cursor=" + page.NextCursor
	}
	if !slices.Equal(listed, made) {
		t.Errorf("got tasks %v, want %v", listed, made)
	}
}

func TestListByState(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	stage.Accept(t)
	done := stage.Success(t, "a.xml", "", "x")
	page := get[contract.TaskList](t, stage, "/v1/tasks?state=Completed")
	if len(page.Tasks) != 1 || page.Tasks[0].TaskID != done {
		t.Errorf("got completed tasks %+v, want only %s", page.Tasks, done)
	}
	answer := stage.Call(t, http.MethodGet, "/v1/tasks?state=Orphaned", "")
	if strings.TrimSpace(answer.Body) != `{"tasks":[]}` {
		t.Errorf("got %s, want an empty list", answer.Body)
	}
}

func TestEventsAreInOrderWithoutGaps(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Success(t, "a.xml", "", "x")
	whole := get[contract.TaskEvents](t, stage, "/v1/tasks/"+task+"/events")
	if whole.NextAfter != 0 || len(whole.Events) < 5 {
		t.Fatalf("got %d events, next after %d, want at least 5 and no next page", len(whole.Events), whole.NextAfter)
	}
	var paged []contract.TaskEvent
	for after := 0; ; {
		page := get[contract.TaskEvents](t, stage, "/v1/tasks/"+task+"/events?limit=2&after="+strconv.Itoa(after))
		paged = append(paged, page.Events...)
		if after = page.NextAfter; after == 0 {
			break
		}
	}
	for i, e := range paged {
		if e.Seq != i+1 || e.EventID != whole.Events[i].EventID {
			t.Errorf("event %d: got seq %d, want %d", i+1, e.Seq, i+1)
		}
	}
	if last := paged[len(paged)-1]; len(paged) != len(whole.Events) || last.State != "Completed" {
		t.Errorf("got %d events, the last is %+v, want %d that end in Completed", len(paged), last, len(whole.Events))
	}
}

func TestInvalidQueriesNameTheParameter(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	for path, field := range map[string]string{
		"/v1/tasks?limit=0":                       "limit",
		"/v1/tasks?limit=1001":                    "limit",
		"/v1/tasks?limit=ten":                     "limit",
		"/v1/tasks?state=waiting":                 "state",
		"/v1/tasks?state=":                        "state",
		"/v1/tasks?cursor=nonsense":               "cursor",
		"/v1/tasks?sort=asc":                      "sort",
		"/v1/tasks?limit=1&limit=2":               "limit",
		"/v1/tasks/" + task + "?x=1":              "x",
		"/v1/tasks/" + task + "/events?after=-1":  "after",
		"/v1/tasks/" + task + "/events?limit=0":   "limit",
		"/v1/tasks/" + task + "/events?after=1e3": "after",
		"/healthz?verbose=1":                      "verbose",
	} {
		answer := stage.Call(t, http.MethodGet, path, "")
		var p contract.Problem
		if err := json.Unmarshal([]byte(answer.Body), &p); err != nil || answer.Status != http.StatusBadRequest || p.Field != field {
			t.Errorf("%s: got %d for %q, want 400 for %q", path, answer.Status, p.Field, field)
		}
	}
}

func TestOpenRoutesNeedNoToken(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	stage := apitest.New(t, parts, routes(parts.Signer),
		func(s *apitest.Settings) {
			s.Server.Loopback, s.Server.Tokens = false, httpkit.FixedTokens(access.Full("one", "secret", apitest.Tenant, "main"))
		})
	if health := get[contract.Health](t, stage, "/healthz"); health.Version != "v1.2.3" || health.Status != "ok" {
		t.Errorf("got health %+v, want v1.2.3 and ok", health)
	}
	document := get[map[string]any](t, stage, "/openapi.json")
	if document["openapi"] != "3.1.0" {
		t.Errorf("got OpenAPI version %v, want 3.1.0", document["openapi"])
	}
	if answer := stage.Call(t, http.MethodGet, "/v1/tasks", ""); answer.Status != http.StatusUnauthorized {
		t.Errorf("got %d for tasks without a token, want 401", answer.Status)
	}
	if answer := stage.Call(t, http.MethodHead, "/healthz", ""); answer.Status != http.StatusOK || answer.Body != "" {
		t.Errorf("HEAD: got %d, want 200 without a body", answer.Status)
	}
}

func TestTasksOfOtherTenantsAreNotFound(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	submission, err := api.Export("mods", contract.ExportRequest{PI: apitest.PI})
	if err != nil {
		t.Fatal(err)
	}
	submission.Identity = port.Identity{Tenant: "tenant-b"}
	r, _, err := stage.System.Submit(t.Context(), submission)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/tasks/" + r.TaskID, "/v1/tasks/" + r.TaskID + "/events"} {
		if answer := stage.Call(t, http.MethodGet, path, ""); answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, answer.Status)
		}
	}
	if page := get[contract.TaskList](t, stage, "/v1/tasks"); len(page.Tasks) != 0 {
		t.Errorf("got %d tasks of another tenant, want none", len(page.Tasks))
	}
}
