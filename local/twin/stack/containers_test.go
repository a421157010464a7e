package stack_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// TestWithoutContainerEngine runs an image that is not bound to a program, without a container
// engine.
func TestWithoutContainerEngine(t *testing.T) {
	t.Parallel()
	g := start(t, served{Engine: "unix://" + t.TempDir() + "/none.sock"})
	got := g.End(g.run(`{"image": "alpine", "command": ["echo", "hello"]}`))
	if got.ErrorCode != "IMAGE" || !strings.HasPrefix(got.Error, "no container engine: ") {
		t.Errorf("got %s %q, want that no engine was found", got.ErrorCode, got.Error)
	}
	if bound := g.End(g.post(contract.ExportOptions{})); bound.Status != contract.StatusSuccess {
		t.Errorf("got %+v for an image that is bound to a program, want success", bound)
	}
}

// TestImageThatNoRunnerHas stores jobs in pools of each runner. The warning names the field and
// the runners.
func TestImageThatNoRunnerHas(t *testing.T) {
	t.Parallel()
	g := start(t, served{Engine: "unix://" + t.TempDir() + "/none.sock"})
	g.Token = g.stack.Token()
	for _, runner := range []string{"process", "container"} {
		if made := g.Call(http.MethodPut, "/v1/pools/"+runner, `{"limit": 1, "runner": "`+runner+`"}`); made.Status != http.StatusCreated {
			t.Fatalf("got %d %s", made.Status, made.Body)
		}
	}
	for name, row := range map[string]struct{ body, want string }{
		"no runner":   {`{"image": "alpine"}`, `image: no runner has "alpine". The runner process has exec:PROGRAM, registry.fly.io/arke-mods-export-worker:latest. The runner container has no container engine: `},
		"its runner":  {`{"image": "alpine", "pool": "process"}`, `image: the runner process has no "alpine", want exec:PROGRAM, `},
		"containers":  {`{"image": "exec:/bin/echo", "pool": "container"}`, `image: no runner has "exec:/bin/echo". `},
		"a program":   {`{"image": "exec:/bin/echo"}`, ""},
		"in its pool": {`{"image": "exec:/bin/echo", "pool": "process"}`, ""},
		"bound":       {`{"image": "registry.fly.io/arke-mods-export-worker:latest"}`, ""},
	} {
		for _, call := range []struct{ method, path string }{{http.MethodPut, "?dryRun=true"}, {http.MethodPut, ""}, {http.MethodGet, ""}} {
			body := row.body
			if call.method == http.MethodGet {
				body = ""
			}
			got := g.Call(call.method, "/v1/jobs/a"+call.path, body)
			said := strings.Join(httpkit.Warnings(got.Header), "\n")
			if got.Status >= http.StatusMultipleChoices || said != "" != (row.want != "") || !strings.HasPrefix(said, row.want) {
				t.Errorf("%s: %s %d: got the warnings %s, want %q", name, call.method, got.Status, said, row.want)
			}
		}
		g.Call(http.MethodDelete, "/v1/jobs/a", "")
	}
}

// run submits a run and returns its task.
func (g *target) run(body string) string {
	g.T.Helper()
	got := g.Call(http.MethodPost, "/v1/runs", body)
	if got.Status >= http.StatusMultipleChoices {
		g.T.Fatalf("got %d %s", got.Status, got.Body)
	}
	made := outside.Decode[struct {
		TaskID string `json:"taskId"`
	}](g.T, got.Body)
	return made.TaskID
}
