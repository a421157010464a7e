package flymachines_test

import (
	"net/http"
	"testing"

	"github.com/superfly/fly-go"
)

// TestUpdateStartsAStoppedMachine updates a stopped machine, with and without a start. It
// refuses another current version.
func TestUpdateStartsAStoppedMachine(t *testing.T) {
	t.Parallel()
	m := setup(t)
	in := m.input("warm", "exit 3")
	in.Config.AutoDestroy, in.SkipLaunch = false, true
	made := m.launch(in)
	changed := m.input("", saying("up")+forever)
	changed.ID, changed.SkipLaunch = made.ID, true
	path := "/v1/apps/" + app + "/machines/" + made.ID
	body := map[string]any{"config": changed.Config, "current_version": "another", "skip_launch": true}
	if status, answer := m.call("POST", path, "Bearer "+token, body); status != http.StatusConflict {
		t.Errorf("another version: got %d %v, want 409", status, answer)
	}
	if status, answer := m.call("POST", path, "Bearer "+token, map[string]any{"config": map[string]any{}}); status != http.StatusBadRequest {
		t.Errorf("without an image: got %d %v, want 400", status, answer)
	}
	got, err := m.client.Update(t.Context(), app, changed, "")
	if err != nil || got.State != "stopped" || got.InstanceID == made.InstanceID || got.Name != "warm" {
		t.Fatalf("got %+v, %v, want a stopped machine of another version", got, err)
	}
	body["config"], body["current_version"], body["skip_launch"] = changed.Config, got.InstanceID, false
	if status, answer := m.call("POST", path, "Bearer "+token, body); status != http.StatusOK {
		t.Fatalf("got %d %v, want 200", status, answer)
	}
	m.receive()
	m.wait(made.ID, "started")
	_, err = m.client.Update(t.Context(), app, changed, "")
	refused(t, err, http.StatusPreconditionFailed, "unable to update machine from current state: 'started'")
	if err := m.client.Destroy(t.Context(), app, fly.RemoveMachineInput{ID: made.ID, Kill: true}, ""); err != nil {
		t.Error(err)
	}
}
