package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/shared/app/hooks"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestHookBody checks the body of a hook for each reason (RL-4.14).
func TestHookBody(t *testing.T) {
	t.Parallel()
	document, err := apicheck.Load(contract.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	late := spec.ConstraintViolation{Constraint: spec.CatchUpWindow, Message: "the run is 2h late, want at most 1h", At: at}
	r := run.Run{
		ID: "nightly:20260301T060000Z", TaskID: "job_01", CorrelationID: "c", JobID: "nightly", JobVersion: 3, Trigger: run.TriggerSchedule,
		State: run.ConditionRunning, CreatedAt: at, EnteredAt: at, Violations: []spec.ConstraintViolation{late},
		Policy: spec.Policy{
			StartTimeout: time.Minute, TimeLimit: time.Minute, HeartbeatInterval: time.Second, HeartbeatTimeout: 2 * time.Second, CancelGrace: time.Second,
			Retry: spec.Retry{MaxAttempts: 1, InitialDelay: time.Second, Multiplier: 1, MaxDelay: time.Second},
		},
		Work: spec.Work{Kind: spec.KindJob, Image: "report", Program: &spec.Program{
			Completion: spec.CompletionExit, Env: map[string]spec.Variable{"LEVEL": {Value: "pr1vate"}},
		}},
	}
	adHoc := r
	adHoc.JobID, adHoc.JobVersion, adHoc.ID, adHoc.Trigger = "", 0, "job_01", run.TriggerRequest
	for _, row := range []struct {
		name, hook, constraint string
		call                   hooks.Call
	}{
		{"before a run", "preRunHook", "", hooks.Call{Run: r, Reason: "preRunHook", Asks: true}},
		{"after a run", "postRunHook", "", hooks.Call{Run: r, Reason: "postRunHook", Asks: true}},
		{"violation", "onConstraintViolation", "catchUpWindow", hooks.Call{Run: r, Reason: "catchUpWindow"}},
		{"success", "onSuccess", "", hooks.Call{Run: r, Reason: "onSuccess"}},
		{"failure", "onFailure", "", hooks.Call{Run: r, Reason: "onFailure"}},
		{"without a stored job", "onFailure", "", hooks.Call{Run: adHoc, Reason: "onFailure"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			text, err := api.HookBody(row.call)
			if err != nil {
				t.Fatal(err)
			}
			if err := document.CheckSchema("HookBody", text); err != nil {
				t.Errorf("got a body that differs from its schema: %v", err)
			}
			var got contract.HookBody
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if got.Hook != row.hook || got.Run.RunID != row.call.Run.ID || strings.Contains(string(text), "pr1vate") {
				t.Errorf("got %s, want the hook %s and the run without its environment", text, row.hook)
			}
			if (got.Job == nil) != (row.call.Run.JobID == "") || got.Job != nil && *got.Job != (contract.HookJob{ID: "nightly", Version: 3}) {
				t.Errorf("got job %+v, want that of the run", got.Job)
			}
			if (got.Constraint == nil) != (row.constraint == "") || got.Constraint != nil && *got.Constraint != (contract.HookConstraint{Name: row.constraint, Message: late.Message, Timestamp: at}) {
				t.Errorf("got constraint %+v, want %q", got.Constraint, row.constraint)
			}
			if r.Work.Program.Env["LEVEL"].Value == "" {
				t.Error("got the run changed")
			}
		})
	}
}
