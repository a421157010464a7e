package run

import "time"

// Beat is the small item beside a run that its worker's heartbeats write, so
// that a heartbeat leaves the record alone. One is open from the first call of
// an attempt's worker until the attempt ends.
type Heartbeat struct {
	// Attempt says whose heartbeats it takes, WorkerID which worker of that
	// attempt is heard.
	Attempt  int
	WorkerID string
	// At is when the last call, started or heartbeat, was received.
	At time.Time
	// Progress is in percent, 0 to 100; nil while none was told.
	Progress *int
	// Message is the worker's own, at most 2 KiB.
	Message string
	// Token is the task token whose heartbeat clock a heartbeat starts anew,
	// Generation the entry that it belongs to; "" for none.
	Token      string
	Generation int
	// Cancel is the reason, which may be empty, where a cancel is wished; nil
	// where none is.
	Cancel *string
}

// BeatChange is what a commit does to that item; the zero value is nothing. Its
// parts are applied in their order.
type HeartbeatChange struct {
	// Judged, where it is not zero, makes the whole commit good only while an
	// item is open whose At is still Judged. It is else a lost race.
	Evaluated time.Time
	// Open makes the item, whatever was there.
	Open *Heartbeat
	// Token replaces Token and Generation of an open item; nothing where none
	// is open.
	Token      *string
	Generation int
	// Cancel sets Cancel of an open item.
	Cancel *string
	// Close removes the item.
	Close bool
}
