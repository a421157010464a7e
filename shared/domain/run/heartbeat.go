package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Heartbeat is a small item beside the record of a run. Heartbeats write to it instead of the
// record. It exists from the first call of an attempt's worker until the attempt ends.
type Heartbeat struct {
	// Attempt and WorkerID identify the worker whose heartbeats are recorded.
	Attempt  int
	WorkerID string
	// At is when the last call was received: started, or a heartbeat.
	At time.Time
	// Progress is in percent, 0 to 100; nil until it is reported.
	Progress *int
	// Message is the worker's text, at most 2 KiB.
	Message string
	// Token is the task token whose heartbeat timeout a heartbeat restarts; empty without one.
	// Generation is its entry into the token state. TokenAt is when it was set.
	Token      string
	Generation int
	TokenAt    time.Time
	// Previous is the value of At before the last heartbeat; zero before the first one.
	Previous time.Time
	// ForwardEvery is the period in which one heartbeat is forwarded to Token; 0 forwards each
	// heartbeat.
	ForwardEvery time.Duration
	// Timeout is the heartbeat limit that sweeps check, instead of the timeout of Token; 0 if
	// sweeps do not check it.
	Timeout time.Duration
	// Cancel is the reason of the cancel request, which may be empty; nil without a cancel
	// request.
	Cancel *string
	// Received counts the heartbeats of the attempt, without other calls.
	Received int
}

// DueAt returns when the heartbeat limit expires and a sweep must evaluate the worker; zero if
// sweeps do not check the limit.
func (h Heartbeat) DueAt() time.Time {
	if h.Timeout <= 0 {
		return time.Time{}
	}
	return h.At.Add(h.Timeout)
}

// Forward reports whether the heartbeat that was just recorded must be forwarded to Token: the
// first one since Token was set, and the first one in each period.
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

// forwardEvery returns the period in which one heartbeat is forwarded. Two forwarded heartbeats
// are less than the limit apart, even if the worker's interval differs by an eighth. If the
// limit is at least four intervals, two are forwarded within it, so that one may fail.
func forwardEvery(p spec.Policy) time.Duration {
	n := int64(p.HeartbeatTimeout-p.HeartbeatInterval/2) / int64(p.HeartbeatInterval)
	if n >= 4 {
		n /= 2
	}
	return time.Duration(max(n, 1)*int64(p.HeartbeatInterval)) - p.HeartbeatInterval/4
}

// HeartbeatChange describes how a commit changes the heartbeat item; the zero value changes
// nothing. Its parts are applied in the order of the fields.
type HeartbeatChange struct {
	// Evaluated, if not zero, makes the commit conditional: an item must exist, and its At must
	// be Evaluated. Otherwise the commit has lost a race.
	Evaluated time.Time
	// Open creates the item, or replaces the existing one.
	Open *Heartbeat
	// Token replaces Token, Generation and TokenAt of an existing item. It does nothing without
	// an item.
	Token      *string
	Generation int
	TokenAt    time.Time
	// Cancel sets Cancel of an existing item.
	Cancel *string
	// Close removes the item.
	Close bool
}
