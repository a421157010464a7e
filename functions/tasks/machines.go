package tasks

import (
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// ReportRoutes returns the route of the agents that watch clusters.
func ReportRoutes(reports *runs.MachineReports) []httpkit.Route {
	return []httpkit.Route{{
		Method: http.MethodPost, Pattern: "/v1/machines:report", Access: httpkit.ForClients, Scope: access.MachinesReport,
		Handle: func(w http.ResponseWriter, r *http.Request) error { return report(reports, w, r) },
	}}
}

// report serves POST /v1/machines:report.
func report(reports *runs.MachineReports, w http.ResponseWriter, r *http.Request) error {
	var body contract.MachineReport
	if err := httpkit.DecodeJSON(w, r, &body); err != nil {
		return err
	}
	reported, err := reportedMachines(body)
	if err != nil {
		return err
	}
	results, err := reports.Report(r.Context(), httpkit.CallerOf(r.Context()), reported)
	if err != nil {
		return fmt.Errorf("cannot look at the machines: %w", err)
	}
	answer := contract.MachineReportAnswer{Machines: make([]contract.MachineReportResult, len(results))}
	for i, result := range results {
		answer.Machines[i] = contract.MachineReportResult{RunID: reported[i].RunID, Attempt: reported[i].Attempt, Result: string(result)}
	}
	return httpkit.WriteJSON(w, http.StatusOK, answer)
}

// The limits of a report.
const (
	longest      = 255
	mostAttempts = 1_000_000
)

// textProblem returns the problem of a text in a report, or "" if it is valid.
func textProblem(value string, most int) string {
	switch n := utf8.RuneCountInString(value); {
	case n == 0:
		return "missing"
	case n > most:
		return fmt.Sprintf("got %d characters, want at most %d", n, most)
	}
	return ""
}

func reportedMachines(body contract.MachineReport) ([]runs.ReportedMachine, error) {
	if problem := textProblem(body.Cluster, longest); problem != "" {
		return nil, fault.Invalid("cluster", "%s", problem)
	}
	if n := len(body.Machines); n < 1 || n > limit.ReportedMachines {
		return nil, fault.Invalid("machines", "got %d machines, want 1 to %d", n, limit.ReportedMachines)
	}
	reported := make([]runs.ReportedMachine, len(body.Machines))
	for i, m := range body.Machines {
		at := "machines." + strconv.Itoa(i) + "."
		if m.Attempt < 1 || m.Attempt > mostAttempts {
			return nil, fault.Invalid(at+"attempt", "%d is out of range, want 1 to %d", m.Attempt, mostAttempts)
		}
		for _, text := range []struct {
			field, value string
			most         int
		}{{"runId", m.RunID, longest}, {"namespace", m.Namespace, 63}, {"machineId", m.MachineID, longest}} {
			if problem := textProblem(text.value, text.most); problem != "" {
				return nil, fault.Invalid(at+text.field, "%s", problem)
			}
		}
		reported[i] = runs.ReportedMachine{RunID: m.RunID, Attempt: m.Attempt, Machine: port.Machine{
			Runner: platform.RunnerKubernetes, Cluster: body.Cluster, App: m.Namespace, ID: m.MachineID,
		}}
	}
	return reported, nil
}
