package stack_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/contract"
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
