package suite

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func tenants() []Test {
	return []Test{
		{Name: "another tenant's task is unknown", Requires: []Capability{OtherTokens, AnySource}, Run: foreignTask},
		{Name: "a key of another tenant is another key", Requires: []Capability{OtherTokens, ScriptedWorkers}, Run: foreignKey},
		{Name: "another tenant's job is unknown", Requires: []Capability{OtherTokens}, Run: foreignJob},
		{Name: "a missing scope for a job is 403", Requires: []Capability{OtherTokens}, Run: missingJobScope},
		{Name: "a missing scope is 403", Requires: []Capability{OtherTokens, AnySource}, Run: missingScope},
	}
}

// as returns the client with another token.
func (c *Case) as(token string) *outside.Client {
	other := *c.Client
	other.Token = token
	return &other
}

// reads and writes are the calls that name a task.
var (
	reads = []string{"/status/%", "/download/%", "/v1/tasks/%", "/v1/tasks/%/events", "/v1/tasks/%/logs"}

	writes = []struct{ method, path string }{
		{http.MethodPost, "/v1/tasks/%/cancel"}, {http.MethodPost, "/v1/tasks/%/retry"}, {http.MethodDelete, "/download/%"},
	}
)

func foreignTask(c *Case) {
	task := c.StartShort("own")
	before, stranger := c.End(task), c.as(c.Target.Others.Stranger)
	call := func(method, path string) {
		answer := stranger.Call(method, strings.ReplaceAll(path, "%", task), "")
		if answer.Status != http.StatusNotFound || answer.Problem(c.T).Code != "NOT_FOUND" {
			c.T.Errorf("%s %s as another tenant: got %d %s, want 404", method, path, answer.Status, answer.Body)
		}
	}
	for _, path := range reads {
		call(http.MethodGet, path)
	}
	for _, w := range writes {
		call(w.method, w.path)
	}
	for _, other := range outside.Get[contract.TaskList](stranger, "/v1/tasks?limit=1000").Tasks {
		if other.TaskID == task {
			c.T.Errorf("got the task %s in another tenant's list", task)
		}
	}
	if after := outside.Get[contract.Status](c.Client, "/status/"+task); !reflect.DeepEqual(before, after) {
		c.T.Errorf("own status afterwards: got %+v, want %+v", after, before)
	}
}

func foreignKey(c *Case) {
	c.Target.Scripts.Set(c.T, c.Batch("held"), "wait:"+scripts.Pipe(c.T)+" success")
	stranger := c.as(c.Target.Others.Stranger)
	body := string(outside.Encode(c.T, contract.ExportRequest{PI: c.root(), BatchID: new(c.Batch("held"))}))
	tasks := map[string]bool{}
	for _, client := range []*outside.Client{c.Client, stranger} {
		answer := client.Call(http.MethodPost, "/export/mods", body, "Idempotency-Key", c.Batch("key"))
		if answer.Status != http.StatusAccepted {
			c.T.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
		}
		task := outside.Decode[contract.ExportAccepted](c.T, answer.Body).TaskID
		if tasks[task] {
			c.T.Errorf("got the task %s of another request", task)
		}
		tasks[task] = true
		if answer := client.Call(http.MethodPost, "/v1/tasks/"+task+"/cancel", ""); answer.Status >= http.StatusBadRequest {
			c.T.Errorf("cancel: got %d %s, want a success", answer.Status, answer.Body)
		}
		client.End(task)
	}
}

func missingScope(c *Case) {
	task := c.StartShort("own")
	c.End(task)
	reader := c.as(c.Target.Others.Reader)
	if answer := reader.Call(http.MethodGet, "/status/"+task, ""); answer.Status != http.StatusOK {
		c.T.Errorf("status with runs:read: got %d %s, want 200", answer.Status, answer.Body)
	}
	refused := func(method, path, body string) {
		answer := reader.Call(method, strings.ReplaceAll(path, "%", task), body)
		p := answer.Problem(c.T)
		if answer.Status != http.StatusForbidden || p.Code != "MISSING_SCOPE" || !strings.Contains(p.Detail, "runs:write") {
			c.T.Errorf("%s %s with runs:read: got %d %s, want 403 MISSING_SCOPE", method, path, answer.Status, answer.Body)
		}
	}
	refused(http.MethodPost, "/export/mods", string(outside.Encode(c.T, contract.ExportRequest{PI: c.root()})))
	for _, w := range writes {
		refused(w.method, w.path, "")
	}
}

// jobCalls are the calls that name a job. Calls that make a change have a scope.
var jobCalls = []struct{ method, path, body, scope string }{
	{http.MethodGet, "", "", ""},
	{http.MethodGet, "/versions/1", "", ""},
	{http.MethodGet, "/runs", "", ""},
	{http.MethodPatch, "", `{"image": "b"}`, "jobs:write"},
	{http.MethodPost, "/pause", "", "jobs:write"},
	{http.MethodPost, "/resume", "", "jobs:write"},
	{http.MethodPost, "/clear", "", "jobs:write"},
	{http.MethodPost, "/runs", "{}", "runs:write"},
	{http.MethodDelete, "", "", "jobs:write"},
}

func foreignJob(c *Case) {
	path, stranger := c.job("own", document{"image": "a"}), c.as(c.Target.Others.Stranger)
	for _, call := range jobCalls {
		answer := stranger.Call(call.method, path+call.path, call.body)
		if answer.Status != http.StatusNotFound || answer.Problem(c.T).Code != "NOT_FOUND" {
			c.T.Errorf("%s %s as another tenant: got %d %s, want 404", call.method, call.path, answer.Status, answer.Body)
		}
	}
	if jobs := outside.Get[contract.JobList](stranger, "/v1/jobs?limit=1000").Jobs; slices.ContainsFunc(jobs, func(j contract.JobSummary) bool { return j.ID == jobID(path) }) {
		c.T.Error("got the job in another tenant's list")
	}
	if j := outside.Get[api.JobAnswer](c.Client, path); j.Version != 1 || j.Image != "a" {
		c.T.Errorf("got %+v afterwards, want the job unchanged", j)
	}
}

func missingJobScope(c *Case) {
	path, reader := c.job("scoped", document{"image": "a"}), c.as(c.Target.Others.Reader)
	for _, call := range append(slices.Clone(jobCalls), struct{ method, path, body, scope string }{http.MethodPut, "-new", `{"image": "a"}`, "jobs:write"}) {
		if call.scope == "" {
			continue
		}
		answer := reader.Call(call.method, path+call.path, call.body)
		if p := answer.Problem(c.T); answer.Status != http.StatusForbidden || p.Code != "MISSING_SCOPE" || !strings.Contains(p.Detail, call.scope) {
			c.T.Errorf("%s %s with runs:read: got %d %s, want 403 for %s", call.method, call.path, answer.Status, answer.Body, call.scope)
		}
	}
}
