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
	// Admin allows operating pools and other resources of the deployment.
	Admin Scope = "admin"
	// Quota allows changing quotas and budgets.
	Quota Scope = "orch:quota"
	// Backfill allows runs for times in the past.
	Backfill Scope = "orch:backfill"
)

// Scopes lists all scopes.
func Scopes() []Scope {
	return []Scope{RunsRead, RunsWrite, JobsWrite, EventsRead, Admin, Quota, Backfill}
}

// Known reports whether s is one of Scopes.
func (s Scope) Known() bool { return slices.Contains(Scopes(), s) }
