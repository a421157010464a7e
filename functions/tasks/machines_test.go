package tasks_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const reportPath = "/v1/machines:report"

func TestReportOfMachines(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	body := `{"cluster": "east", "machines": [{"runId": "none", "attempt": 2, "namespace": "runs", "machineId": "a.1"}]}`
	got, _ := apitest.Decoded[contract.MachineReportAnswer](t, stage, http.MethodPost, reportPath, body, http.StatusOK)
	if len(got.Machines) != 1 || got.Machines[0] != (contract.MachineReportResult{RunID: "none", Attempt: 2, Result: contract.MachineUnknown}) {
		t.Errorf("got %+v, want an unknown machine", got)
	}
}

func TestMalformedReportsAreRefused(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	const machine = `{"runId": "a", "attempt": 1, "namespace": "runs", "machineId": "a.1"}`
	report := func(machines string) string { return `{"cluster": "east", "machines": [` + machines + `]}` }
	for field, body := range map[string]string{
		"machines.2.runId":     report(machine + "," + machine + "," + strings.Replace(machine, `"a",`, `"`+strings.Repeat("é", 256)+`",`, 1)),
		"cluster":              strings.Replace(report(machine), "east", "", 1),
		"machines":             report(""),
		"machines.0.runId":     report(strings.Replace(machine, `"a",`, `"",`, 1)),
		"machines.0.attempt":   report(strings.Replace(machine, `: 1`, `: 0`, 1)),
		"machines.1.namespace": report(machine + "," + strings.Replace(machine, "runs", "", 1)),
		"machines.0.machineId": report(strings.Replace(machine, "a.1", "", 1)),
	} {
		if got := stage.Call(t, http.MethodPost, reportPath, body); got.Status != http.StatusBadRequest || !strings.Contains(got.Body, `"field":"`+field+`"`) {
			t.Errorf("%s: got %d %s, want 400 with %s", body, got.Status, got.Body, field)
		}
	}
	many := report(strings.Repeat(machine+",", limit.ReportedMachines) + machine)
	if got := stage.Call(t, http.MethodPost, reportPath, many); got.Status != http.StatusBadRequest || !strings.Contains(got.Body, fmt.Sprint("1 to ", limit.ReportedMachines)) {
		t.Errorf("got %d %s, want at most %d machines", got.Status, got.Body, limit.ReportedMachines)
	}
}
