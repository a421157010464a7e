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
	// "". Generation is the entry that it belongs to, TokenAt when it was set.
	Token      string
	Generation int
	TokenAt    time.Time
	// Previous is At before the last heartbeat was recorded; zero before the
	// first one.
	Previous time.Time
	// ForwardEvery is the time after which a heartbeat must restart the clock of
	// Token again; 0 forwards each heartbeat.
	ForwardEvery time.Duration
	// Timeout is the heartbeat limit that sweeps check, in place of the clock of
	// Token; 0 if they do not.
	Timeout time.Duration
	// Cancel is the reason of the cancel request, which may be empty; nil if
	// there is no cancel request.
	Cancel *string
	// Received counts the recorded heartbeats of the attempt, without its other calls.
	Received int
}

// DueAt is when a sweep finds that a heartbeat is overdue; zero if sweeps do not
// check the limit.
func (h Heartbeat) DueAt() time.Time {
	if h.Timeout <= 0 {
		return time.Time{}
	}
	return h.At.Add(h.Timeout)
}

// Forward reports whether the heartbeat that was just recorded must restart the clock
// of Token: the first one since Token was set, and then the first one in each period.
func (h Heartbeat) Forward() bool {
	switch {
	case h.Token == "":
		return false
	case h.ForwardEvery <= 0 || !h.Previous.After(h.TokenAt):
		return true
	}
	period := func(at time.Time) time.Duration { return at.Sub(h.TokenAt) / h.ForwardEvery }
	return period(h.At) != period(h.Previous)
}

// forwardEvery returns the period in which one heartbeat is forwarded. Two heartbeats
// that are forwarded one after the other are less than the limit apart, even if the
// worker's interval differs by an eighth. Where the limit allows four intervals, two
// are forwarded in it, so that one may fail.
func (p Policy) forwardEvery() time.Duration {
	n := int64(p.HeartbeatTimeout-p.HeartbeatInterval/2) / int64(p.HeartbeatInterval)
	if n >= 4 {
		n /= 2
	}
	return time.Duration(max(n, 1)*int64(p.HeartbeatInterval)) - p.HeartbeatInterval/4
}

// HeartbeatChange is what a commit does to that item; its zero value does
// nothing. Its parts are applied in their order.
type HeartbeatChange struct {
	// Evaluated, if it is not zero, makes the commit conditional: an item must
	// be open whose At is still Evaluated. Otherwise the commit is a lost race.
	Evaluated time.Time
	// Open creates the item and replaces an existing one.
	Open *Heartbeat
	// Token replaces Token, Generation and TokenAt of an open item. It does
	// nothing if no item is open.
	Token      *string
	Generation int
	TokenAt    time.Time
	// Cancel sets Cancel of an open item.
	Cancel *string
	// Close removes the item.
	Close bool
}
