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
	// WebhooksWrite allows changing and testing webhooks, which send events of the tenant
	// to addresses of the caller's choice, and giving such addresses to exports, runs and
	// jobs.
	WebhooksWrite Scope = "webhooks:write"
	// MetricsRead allows reading the metrics of the deployment, which count the runs of
	// all tenants and name their pools.
	MetricsRead Scope = "metrics:read"
	// MachinesReport allows reporting machines of the tenant's runs, at which Sortie then
	// looks. It is for the agent in a cluster.
	MachinesReport Scope = "machines:report"
	// Exec allows running programs of the server's host, which have all rights of the user
	// who started the server. It means something on a local system alone.
	Exec Scope = "exec"
	// Admin allows operating pools and other resources of the deployment.
	Admin Scope = "admin"
	// Quota allows changing the limits of budgets.
	Quota Scope = "orch:quota"
	// Backfill allows replays of events.
	Backfill Scope = "orch:backfill"
)

// Scopes lists all scopes.
func Scopes() []Scope {
	return []Scope{RunsRead, RunsWrite, JobsWrite, EventsRead, WebhooksWrite, MetricsRead, MachinesReport, Exec, Admin, Quota, Backfill}
}

// Ordinary lists the scopes without Exec: those of a caller who was given none by name.
func Ordinary() []Scope {
	return slices.DeleteFunc(Scopes(), func(s Scope) bool { return s == Exec })
}

// Known reports whether s is one of Scopes.
func (s Scope) Known() bool { return slices.Contains(Scopes(), s) }
