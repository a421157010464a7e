package status_test

import (
	"testing"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
)

// TestStatusHasMachineAndTimes checks EC-4.1 and EC-5.3.
func TestStatusHasMachineAndTimes(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	if s, _ := get(t, stage, task); !s.CreatedAt.Equal(apitest.Began) || s.MachineID != "" || len(s.Options) == 0 {
		t.Errorf("got created at %v, machine %q, options %q, want %v, none, an object", s.CreatedAt, s.MachineID, s.Options, apitest.Began)
	}
	stage.Start(t, task)
	if s, _ := get(t, stage, task); s.MachineID != stage.Run(t, task).Attempt.Machine.ID || s.MachineID == "" || s.StartedAt.IsZero() || !s.CompletedAt.IsZero() {
		t.Errorf("got machine %q, started at %v, completed at %v, want a machine that runs", s.MachineID, s.StartedAt, s.CompletedAt)
	}
	if s, _ := get(t, stage, stage.Success(t, "a.xml", "application/xml", "<a/>")); !s.CompletedAt.Equal(apitest.Began) {
		t.Errorf("got completed at %v, want %v", s.CompletedAt, apitest.Began)
	}
}

// TestStatusHasTheBatch checks EC-5.7.
func TestStatusHasTheBatch(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	if s, _ := get(t, stage, stage.Accept(t)); s.BatchID != "single" {
		t.Errorf("got batch_id %q without one in the request, want single", s.BatchID)
	}
}
