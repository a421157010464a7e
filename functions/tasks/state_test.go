package tasks_test

import (
	"net/http"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestStateFilterIgnoresCase(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	for _, state := range []string{"Pending", "pending", "PENDING"} {
		if list := get[contract.TaskList](t, stage, "/v1/tasks?state="+state); len(list.Tasks) != 1 || list.Tasks[0].TaskID != task {
			t.Errorf("state %s: got %d tasks, want %s", state, len(list.Tasks), task)
		}
	}
	if list := get[contract.TaskList](t, stage, "/v1/tasks?state=running"); len(list.Tasks) != 0 {
		t.Errorf("state running: got %d tasks, want none", len(list.Tasks))
	}
	for _, state := range []string{"", "runnin"} {
		if answer := stage.Call(t, http.MethodGet, "/v1/tasks?state="+state, ""); answer.Status != http.StatusBadRequest {
			t.Errorf("state %q: got status %d, want 400", state, answer.Status)
		}
	}
}
