// Package change has what the changes of resources have in common in all rooms of shared/app:
// the condition that a client sets, the idempotency key, and the event that records a change.
//
// The resources are jobs, pools, models, budgets and webhooks. Each room stores its own. The
// package makes no call of a port: Note returns the event, which the caller stores in the commit
// of the change.
package change
