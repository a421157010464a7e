package contract

// MachineReport is the body of POST /v1/machines:report. It contains the machines of a cluster
// about which the cluster's agent has news.
type MachineReport struct {
	// Cluster is the name of the cluster in the deployment.
	Cluster  string            `json:"cluster"`
	Machines []ReportedMachine `json:"machines"`
}

// ReportedMachine is one machine of a report, with the attempt that its Job names.
type ReportedMachine struct {
	RunID     string `json:"runId"`
	Attempt   int    `json:"attempt"`
	Namespace string `json:"namespace"`
	// MachineID is the name of the Job, a dot, and its UID.
	MachineID string `json:"machineId"`
}

// MachineReportAnswer contains the result for each machine of a report, in the same order.
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
	// MachineChanged means that the run has changed. MachineUnchanged means that the run
	// already agrees with the runner.
	MachineChanged   = "changed"
	MachineUnchanged = "unchanged"
	// MachineUnknown means that no current attempt of the tenant uses the machine.
	MachineUnknown = "unknown"
)
