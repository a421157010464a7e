package access

import "slices"

// Scope is a permission of a client token. No scope implies another one.
type Scope string

// The scopes.
const (
	// RunsRead allows reading tasks, their events, logs and outputs.
	RunsRead Scope = "runs:read"
	// RunsWrite allows creating, cancelling and retrying tasks, and deleting
	// their outputs.
	RunsWrite Scope = "runs:write"
	// JobsWrite allows changing jobs.
	JobsWrite Scope = "jobs:write"
	// EventsRead allows reading the tenant's event stream.
	EventsRead Scope = "events:read"
	// WebhooksWrite allows changing and testing webhooks, and setting webhook addresses in
	// exports, runs and jobs. Webhooks send the tenant's events to an address that the
	// caller chooses.
	WebhooksWrite Scope = "webhooks:write"
	// MetricsRead allows reading the metrics of the deployment, which count the runs of
	// all tenants and name their pools.
	MetricsRead Scope = "metrics:read"
	// MachinesReport allows reporting changes of machines of the tenant's runs. Sortie then
	// inspects these machines. It is for the agent in a cluster.
	MachinesReport Scope = "machines:report"
	// Exec allows running programs on the server's host with all rights of the user who
	// started the server. It has an effect only on a local system.
	Exec Scope = "exec"
	// Admin allows operating pools and other resources of the deployment.
	Admin Scope = "admin"
	// Quota allows changing the limits of budgets.
	Quota Scope = "orch:quota"
	// Backfill allows replaying events.
	Backfill Scope = "orch:backfill"
)

// Scopes lists all scopes.
func Scopes() []Scope {
	return []Scope{RunsRead, RunsWrite, JobsWrite, EventsRead, WebhooksWrite, MetricsRead, MachinesReport, Exec, Admin, Quota, Backfill}
}

// Ordinary lists all scopes except Exec. A caller without explicit scopes gets these.
func Ordinary() []Scope {
	return slices.DeleteFunc(Scopes(), func(s Scope) bool { return s == Exec })
}

// Known reports whether s is one of Scopes.
func (s Scope) Known() bool { return slices.Contains(Scopes(), s) }
