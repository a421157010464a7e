package run

import "time"

// Heartbeat is the small item beside a run that heartbeats write, so that they
// do not write the record. It is open from the first call of an attempt's
// worker until the attempt ends.
type Heartbeat struct {
	// Attempt and WorkerID identify the worker whose heartbeats are recorded.
	Attempt  int
	WorkerID string
	// At is when the last call, started or heartbeat, was received.
	At time.Time
	// Progress is in percent, 0 to 100; nil until it is reported.
	Progress *int
	// Message is the worker's text, at most 2 KiB.
	Message string
	// Token is the task token whose heartbeat clock a heartbeat restarts, or
	// "". Generation is the entry that it belongs to.
	Token      string
	Generation int
	// Cancel is the reason of the cancel request, which may be empty; nil if
	// there is no cancel request.
	Cancel *string
}

// HeartbeatChange is what a commit does to that item; its zero value does
// nothing. Its parts are applied in their order.
type HeartbeatChange struct {
	// Evaluated, if it is not zero, makes the commit conditional: an item must
	// be open whose At is still Evaluated. Otherwise the commit is a lost race.
	Evaluated time.Time
	// Open creates the item and replaces an existing one.
	Open *Heartbeat
	// Token replaces Token and Generation of an open item. It does nothing if
	// none is open.
	Token      *string
	Generation int
	// Cancel sets Cancel of an open item.
	Cancel *string
	// Close removes the item.
	Close bool
}
