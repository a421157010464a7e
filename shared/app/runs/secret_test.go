package runs_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// program changes the work of an accepted run to a job with the program.
func (h *fixture) program(task string, p spec.Program) {
	h.Helper()
	r := h.record(task)
	r.Work.Kind, r.Work.Program = spec.KindJob, &p
	h.ok(h.store.Commit(h.Context(), port.Write{Run: r}))
}

func TestLaunchReadsTheSecrets(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.secrets.Put(client.Tenant, "report-key", "s3cret")
	h.secrets.Put("other", "report-key", "of another tenant")
	task := h.accept()
	h.program(task, spec.Program{Env: map[string]spec.Variable{"LEVEL": {Value: "info"}, "EMPTY": {}, "API_KEY": {SecretRef: "report-key"}}})
	h.step()
	h.wantState(task, run.Running)
	want := map[string]string{"LEVEL": "info", "EMPTY": "", "API_KEY": "s3cret"}
	if got := h.assigned.Variables; !maps.Equal(got, want) {
		t.Errorf("got variables %v, want %v", got, want)
	}
	if strings.Contains(h.log.String(), "s3cret") {
		t.Error("got the value in the log")
	}
}

func TestUnknownSecretEndsTheRun(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.accept()
	h.program(task, spec.Program{Env: map[string]spec.Variable{"API_KEY": {SecretRef: "report-key"}}})
	h.step()
	r := h.wantState(task, run.Failed)
	if r.Fault == nil || r.Fault.Code != fault.SecretMissing || !strings.Contains(r.Fault.Message, `env.API_KEY: unknown secret "report-key"`) {
		t.Errorf("got fault %+v, want %s with the variable and the name", r.Fault, fault.SecretMissing)
	}
	if len(h.runner.launched) != 0 {
		t.Errorf("got %d machines, want none", len(h.runner.launched))
	}
}
