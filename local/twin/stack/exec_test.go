package stack_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/tokenfile"
	service "github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestAnonymousClientDoesNotBecomeTheOwner simulates a program of the host without a token. It
// runs the export image, which every local system has, and names a file of the owner as the
// output.
func TestAnonymousClientDoesNotBecomeTheOwner(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	secret, err := os.ReadFile(g.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	owner := *g.Client
	owner.Token = g.stack.Token()
	link, hard := filepath.Join(t.TempDir(), "link"), filepath.Join(filepath.Dir(g.TokenFile), "hard")
	if err := os.Symlink(g.TokenFile, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(g.TokenFile, hard); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a path out of the folder": "../../../../token", "an absolute path": g.TokenFile,
		"a symbolic link": link, "a hard link": hard,
	} {
		body, err := json.Marshal(map[string]any{
			"image": service.DefaultImage, "command": []string{"--help"}, "exitCodes": map[string]any{"success": []int{0, 1, 2}},
			"output": map[string]string{"path": path}, "retryConfig": map[string]int{"maxRetries": 0},
		})
		if err != nil {
			t.Fatal(err)
		}
		for client, c := range map[string]*outside.Client{"without a token": g.Client, "with the owner's token": &owner} {
			answer := c.Call(http.MethodPost, "/v1/runs", string(body))
			if answer.Status >= 400 {
				continue
			}
			t.Errorf("%s %s: got %d, want a refusal", name, client, answer.Status)
			task := outside.Decode[contract.RunAccepted](t, answer.Body).TaskID
			g.End(task)
			if file := c.Call(http.MethodGet, "/download/"+task, ""); strings.Contains(string(file.Body), strings.TrimSpace(string(secret))) {
				t.Errorf("%s %s: got the owner's token", name, client)
			}
		}
	}
}

// host runs a program of the host. bound runs a program that is bound to an image name.
const host, bound = `"image": "exec:/bin/true"`, `"image": "` + service.DefaultImage + `"`

// doors returns all requests that can start a program of the host. nightly is a job with such a
// program, run is an ended run of it, and plain is a job with an image that is not bound.
func doors() map[string][3]string {
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	trigger := `{"type": "trigger_job", "parameters": {"jobId": "nightly"}}`
	return map[string][3]string{
		"a run":                        {"POST", "/v1/runs", `{` + host + `}`},
		"a bound image":                {"POST", "/v1/runs", `{` + bound + `}`},
		"a bound image, command":       {"POST", "/v1/runs", `{` + bound + `, "command": ["--help"]}`},
		"a bound image, env":           {"POST", "/v1/runs", `{` + bound + `, "env": {"A": "b"}}`},
		"a bound image, codes":         {"POST", "/v1/runs", `{` + bound + `, "exitCodes": {"success": [2]}}`},
		"a bound image, input":         {"POST", "/v1/runs", `{` + bound + `, "input": "YQ=="}`},
		"a bound image, output":        {"POST", "/v1/runs", `{` + bound + `, "output": {"path": "a"}}`},
		"a bound image, callback":      {"POST", "/v1/runs", `{` + bound + `, "completion": "callback"}`},
		"a plan":                       {"POST", "/v1/runs:plan", `{` + host + `}`},
		"a plan of a bound image":      {"POST", "/v1/runs:plan", `{` + bound + `}`},
		"a plan of a job":              {"POST", "/v1/runs:plan", `{"jobId": "nightly"}`},
		"a job":                        {"PUT", "/v1/jobs/new", `{` + host + `}`},
		"a job with a schedule":        {"PUT", "/v1/jobs/new", `{` + host + `, "schedule": "@every 1s"}`},
		"a job of a bound image":       {"PUT", "/v1/jobs/new", `{` + bound + `}`},
		"an export by a program":       {"PUT", "/v1/jobs/new", `{` + host + `, "export": {"format": "mods", "pi": "01K9XVBAQZF9EHDRXGBEADTZYY"}}`},
		"a dry run":                    {"PUT", "/v1/jobs/new?dryRun=true", `{` + host + `}`},
		"a change of the job":          {"PUT", "/v1/jobs/nightly", `{` + host + `, "command": ["x"]}`},
		"the same job":                 {"PUT", "/v1/jobs/nightly", `{` + host + `}`},
		"a change of another job":      {"PATCH", "/v1/jobs/plain", `{` + host + `}`},
		"a change to a bound image":    {"PATCH", "/v1/jobs/plain", `{` + bound + `}`},
		"a run of the job":             {"POST", "/v1/jobs/nightly/runs", `{}`},
		"a run of the job, parameters": {"POST", "/v1/jobs/nightly/runs", `{"parameters": {"A": "b"}}`},
		"a later run of the job":       {"POST", "/v1/jobs/nightly/runs", `{"scheduledAt": "` + later + `"}`},
		"a retry of a run":             {"POST", "/v1/runs/{run}/retry", ""},
		"a retry of a task":            {"POST", "/v1/tasks/{run}/retry", ""},
		"replicas of a pool":           {"PUT", "/v1/pools/own", `{"engine": {"kind": "llamacpp", "model": "one", "machines": {"job": "nightly", "count": 1}}}`},
		"warm machines":                {"PUT", "/v1/pools/warm", `{"warm": {"min": 1, "max": 1, "image": "exec:/bin/sh"}, "limit": 1}`},
		"a trigger, success":           {"PUT", "/v1/jobs/new", `{"image": "a", "actions": {"onSuccess": ` + trigger + `}}`},
		"a trigger, failure":           {"PUT", "/v1/jobs/new", `{"image": "a", "actions": {"onFailure": ` + trigger + `}}`},
		"a trigger, violation":         {"PUT", "/v1/jobs/new", `{"image": "a", "constraints": {"requirePreviousSuccess": true}, "actions": {"onConstraintViolation": ` + trigger + `}}`},
		"a trigger, one violation":     {"PUT", "/v1/jobs/new", `{"image": "a", "constraints": {"requirePreviousSuccess": true}, "actions": {"onViolationOf": {"requirePreviousSuccess": ` + trigger + `}}}`},
		"a trigger by a change":        {"PATCH", "/v1/jobs/plain", `{"actions": {"onSuccess": ` + trigger + `}}`},
		"a trigger, dry run":           {"PUT", "/v1/jobs/new?dryRun=true", `{"image": "a", "actions": {"onSuccess": ` + trigger + `}}`},
		"a trigger of a single run":    {"POST", "/v1/runs", `{"image": "a", "actions": {"onSuccess": ` + trigger + `}}`},
		"a trigger of an export":       {"PUT", "/v1/jobs/new", `{"export": {"format": "mods", "pi": "01K9XVBAQZF9EHDRXGBEADTZYY"}, "actions": {"onSuccess": ` + trigger + `}}`},
	}
}

// TestProgramsOfTheHostNeedTheScopeExec sends each request without a token, with the token of
// AUTH_TOKEN, and with one of all scopes but exec.
func TestProgramsOfTheHostNeedTheScopeExec(t *testing.T) {
	t.Parallel()
	const without = "token-without-exec"
	tokens := func(t *testing.T, data string) {
		t.Helper()
		err := tokenfile.Update(filepath.Join(data, stack.TokensFile), func([]access.Token) ([]access.Token, error) {
			most := access.Full("most", without, "default", "default")
			most.Scopes = access.Ordinary()
			return []access.Token{most}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		settings map[string]string
		records  bool
		token    string
		status   int
		code     string
	}{
		"without a token":     {status: 422, code: "RUNNER_NOT_ALLOWED"},
		"with AUTH_TOKEN":     {settings: map[string]string{"AUTH_TOKEN": aToken}, token: aToken, status: 403, code: "MISSING_SCOPE"},
		"with another record": {records: true, token: without, status: 403, code: "MISSING_SCOPE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, served{Settings: row.settings})
			if row.records {
				tokens(t, g.Data)
			}
			owner, stranger := *g.Client, *g.Client
			owner.Token, stranger.Token = g.stack.Token(), row.token
			newFleet(t, &target{Client: &owner, Addresses: g.Addresses, stack: g.stack}) // has the model
			for id, body := range map[string]string{"nightly": `{` + host + `}`, "plain": `{"image": "a"}`} {
				if answer := owner.Call(http.MethodPut, "/v1/jobs/"+id, body); answer.Status != http.StatusCreated {
					t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
				}
			}
			run := outside.Decode[contract.RunAccepted](t, owner.Call(http.MethodPost, "/v1/jobs/nightly/runs", "{}").Body)
			owner.End(run.TaskID)
			for door, request := range doors() {
				answer := stranger.Call(request[0], strings.Replace(request[1], "{run}", run.TaskID, 1), request[2])
				if p := answer.Problem(t); answer.Status != row.status || p.Code != row.code || !strings.Contains(p.Detail, "scope exec") {
					t.Errorf("%s: got %d %s, want %d %s with the scope", door, answer.Status, answer.Body, row.status, row.code)
				}
			}
			stranger.Call(http.MethodPost, "/v1/runs:retry", `{"filter": {"state": ["Completed"]}}`)
			runs := outside.Get[contract.TaskList](&owner, "/v1/tasks?limit=100").Tasks
			if len(runs) != 1 || runs[0].TaskID != run.TaskID {
				t.Errorf("got runs %+v, want that of the owner alone", runs)
			}
			// Commands of the export contract need no scope.
			stranger.End(stranger.Export("mods", contract.ExportRequest{PI: "01K9XVBAQZF9EHDRXGBEADTZYY"}))
			answer := stranger.Call(http.MethodPut, "/v1/jobs/export", `{"export": {"format": "mods", "pi": "01K9XVBAQZF9EHDRXGBEADTZYY"}}`)
			if answer.Status != http.StatusCreated {
				t.Errorf("a job that exports: got %d %s, want 201", answer.Status, answer.Body)
			}
		})
	}
}

// TestOwnerUsesEveryDoor sends each request with the token of the data folder.
func TestOwnerUsesEveryDoor(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	g.Token = g.stack.Token()
	newFleet(t, g)
	for id, body := range map[string]string{"nightly": `{` + host + `}`, "plain": `{"image": "a"}`} {
		g.Call(http.MethodPut, "/v1/jobs/"+id, body)
	}
	run := outside.Decode[contract.RunAccepted](t, g.Call(http.MethodPost, "/v1/jobs/nightly/runs", "{}").Body)
	g.End(run.TaskID)
	for door, request := range doors() {
		path := strings.Replace(request[1], "{run}", run.TaskID, 1)
		if answer := g.Call(request[0], path, request[2]); answer.Status >= 400 {
			t.Errorf("%s: got %d %s, want no refusal", door, answer.Status, answer.Body)
		}
	}
}
