package callback_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestCanariesAreAuthenticated sends canaries with other tokens, and other calls with
// the token of canaries. None writes anything.
func TestCanariesAreAuthenticated(t *testing.T) {
	t.Parallel()
	h := startTask(t)
	forge := func(audience, task string) string {
		return newForger(t, h.stage, h.task, audience).signed(t, nil, map[string]any{"taskId": task, "sub": task})
	}
	const canary = "/v1/tasks/" + runs.CanaryTask
	own := forge(token.AudienceCanary, runs.CanaryTask)
	call := func(path, body, text string) apitest.Answer {
		return h.stage.Call(t, http.MethodPost, path, body, "Authorization", "Bearer "+text)
	}
	recorded := func() port.Reception {
		r, err := h.stage.Store.Reception(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before, version := recorded(), h.stage.Run(t, h.task).Version
	for name, text := range map[string]string{
		"none": "", "a worker's": h.token, "the audience of workers": forge(token.AudienceWorker, runs.CanaryTask),
		"another task": forge(token.AudienceCanary, h.task), "a forged one": own + "x",
	} {
		if answer := call(canary+"/heartbeat", h.body(1, ""), text); answer.Status != http.StatusUnauthorized && answer.Status != http.StatusForbidden {
			t.Errorf("%s: got %d %s, want 401 or 403", name, answer.Status, answer.Body)
		}
	}
	for _, path := range []string{canary + "/started", canary + "/completed", "/v1/tasks/" + h.task + "/heartbeat", "/callback/" + h.task} {
		if answer := call(path, h.body(1, succeeds), own); answer.Status != http.StatusUnauthorized {
			t.Errorf("%s with the token of canaries: got %d %s, want 401", path, answer.Status, answer.Body)
		}
	}
	if after := recorded(); after != before || h.stage.Run(t, h.task).Version != version {
		t.Errorf("got reception %+v, want it unchanged from %+v", after, before)
	}
	h.stage.Clock.Advance(time.Second)
	wantOK(t, call(canary+"/heartbeat", h.body(1, ""), own), heartbeatAck)
	if after := recorded(); !after.At.Equal(h.stage.Clock.Now()) {
		t.Errorf("got the last canary at %s, want %s", after.At, h.stage.Clock.Now())
	}
}
