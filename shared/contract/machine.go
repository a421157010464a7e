package contract

// MachineReport is the body of POST /v1/machines:report: machines of a cluster about which
// its agent has something new.
type MachineReport struct {
	// Cluster is the deployment's name of the cluster.
	Cluster  string            `json:"cluster"`
	Machines []ReportedMachine `json:"machines"`
}

// ReportedMachine is one machine of a report, with the attempt that its Job names.
type ReportedMachine struct {
	RunID     string `json:"runId"`
	Attempt   int    `json:"attempt"`
	Namespace string `json:"namespace"`
	// MachineID is the name of the Job and its UID, with a dot between them.
	MachineID string `json:"machineId"`
}

// MachineReportAnswer has the result for each machine of a report, in its order.
type MachineReportAnswer struct {
	Machines []MachineReportResult `json:"machines"`
}

// MachineReportResult is the result for one machine.
type MachineReportResult struct {
	RunID   string `json:"runId"`
	Attempt int    `json:"attempt"`
	Result  string `json:"result"`
}

// The results of a report.
const (
	// MachineChanged means that the run has changed, MachineUnchanged that it already
	// shows what the runner shows.
	MachineChanged   = "changed"
	MachineUnchanged = "unchanged"
	// MachineUnknown means that no current attempt of the tenant has the machine.
	MachineUnknown = "unknown"
)
