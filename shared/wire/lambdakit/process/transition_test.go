package process

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestIllegalTransitionIsLogged checks RL-0.20: a step that fails with an illegal
// transition writes a line at ERROR with both states.
func TestIllegalTransitionIsLogged(t *testing.T) {
	t.Parallel()
	b := setup(t, deployed)
	b.ServeTask(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, run.IllegalTransition{From: run.Running, To: run.PreRun}
	})
	if answer, err := b.call(t, `{}`); err == nil {
		t.Fatalf("got answer %s, want an error", answer)
	}
	logs, _ := b.lines(t)
	for _, line := range logs {
		if text := fmt.Sprint(line); line["level"] == "ERROR" && strings.Contains(text, "Running") && strings.Contains(text, "PreRun") {
			return
		}
	}
	t.Errorf("got log %v, want a line at ERROR with Running and PreRun", logs)
}
