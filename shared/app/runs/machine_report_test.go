package runs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// reported returns the report about the machine of a task.
func (h *fixture) reported(task string) runs.ReportedMachine {
	r := h.record(task)
	return runs.ReportedMachine{RunID: r.ID, Attempt: r.Attempt.Number, Machine: r.Attempt.Machine}
}

// reportMachines reports machines as the tenant and returns the results.
func (h *fixture) reportMachines(tenant string, machines ...runs.ReportedMachine) []runs.MachineReportResult {
	h.Helper()
	got, err := h.system(wiring{}).Reports.Report(h.Context(), port.Identity{Tenant: tenant}, machines)
	h.ok(err)
	return got
}

// TestReportEndsAnAttempt reports a machine before and after its end, and again.
func TestReportEndsAnAttempt(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	at, tenant := h.reported(task), h.record(task).Tenant
	if got := h.reportMachines(tenant, at); got[0] != runs.MachineUnchanged {
		t.Errorf("got %s of a machine that runs, want unchanged", got[0])
	}
	h.wantState(task, run.Running)
	h.runner.last().exit(3)
	got := h.reportMachines(tenant, at, at)
	if want := []runs.MachineReportResult{runs.MachineChanged, runs.MachineUnchanged}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	r := h.wantState(task, run.Terminating)
	if r.Attempt.Exit == nil || r.Attempt.Exit.Code != 3 {
		t.Errorf("got exit %+v, want code 3", r.Attempt.Exit)
	}
	version := r.Version
	h.reportMachines(tenant, at)
	if now := h.record(task); now.Version != version {
		t.Errorf("got version %d after a repeated report, want %d", now.Version, version)
	}
}

// TestReportOfAnotherMachineIsUnknown reports machines that are not those of the tenant's
// current attempts. None of them is inspected.
func TestReportOfAnotherMachineIsUnknown(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	at, tenant := h.reported(task), h.record(task).Tenant
	h.runner.last().exit(1)
	for name, row := range map[string]struct {
		tenant string
		change func(*runs.ReportedMachine)
	}{
		"another tenant":  {"other", func(*runs.ReportedMachine) {}},
		"another run":     {tenant, func(m *runs.ReportedMachine) { m.RunID = "none" }},
		"another attempt": {tenant, func(m *runs.ReportedMachine) { m.Attempt++ }},
		"another machine": {tenant, func(m *runs.ReportedMachine) { m.Machine.ID += "-other" }},
		"another cluster": {tenant, func(m *runs.ReportedMachine) { m.Machine.Cluster = "west" }},
	} {
		m := at
		row.change(&m)
		if got := h.reportMachines(row.tenant, m); got[0] != runs.MachineUnknown {
			t.Errorf("%s: got %s, want unknown", name, got[0])
		}
	}
	h.wantState(task, run.Running)
}

// TestReportFailsWithTheRunner checks that a report is refused as a whole while the runner
// does not answer, so that it is repeated.
func TestReportFailsWithTheRunner(t *testing.T) {
	t.Parallel()
	h := setup(t)
	first, second := h.post(), h.post()
	for _, m := range h.runner.launched {
		m.exit(1)
	}
	machines := []runs.ReportedMachine{h.reported(first), h.reported(second)}
	who := port.Identity{Tenant: h.record(first).Tenant}
	service := h.system(wiring{runner: partialRunner{h.runner, machines[1].Machine}})
	if _, err := service.Reports.Report(t.Context(), who, machines); err == nil {
		t.Error("got a result although the runner does not answer")
	}
	h.wantState(second, run.Running)
	h.advance(time.Second)
	if got := h.reportMachines(who.Tenant, machines...); got[1] != runs.MachineChanged {
		t.Errorf("got %v, want the second one changed", got)
	}
	h.wantState(second, run.Terminating)
}
