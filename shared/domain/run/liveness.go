package run

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Contact describes the calls of an attempt's worker.
type Contact struct {
	// LastAt is when the worker's last call was received, as stored in its heartbeat item; zero
	// if there is no item.
	LastAt time.Time
	// Reception is the result of the canary. It is used only while Overdue reports true.
	Reception Reception
}

// Reception is the result of a canary: a heartbeat that Sortie sends to itself.
type Reception struct {
	// Received: the canary took the whole path of a heartbeat and was stored.
	Received bool
	// Since is the time since which canaries were received at most Gap apart. Both are zero if
	// that is unknown.
	Since time.Time
	Gap   time.Duration
}

// Overdue reports whether a heartbeat of the attempt's worker is overdue at the time now, so that
// the next evaluation needs a canary. lastContactAt is Contact.LastAt.
func (r Run) Overdue(lastContactAt, now time.Time) bool {
	if r.State != Running || r.EndRequest() != nil || r.Attempt.WorkerID == "" {
		return false
	}
	if !lastContactAt.After(r.Attempt.LastContactAt) && !r.Attempt.ReachableSince.IsZero() {
		return true
	}
	return !now.Before(later(r.Attempt.LastContactAt, lastContactAt).Add(r.Policy.HeartbeatTimeout))
}

// evaluationSlack is how late an evaluation that was due after the canary gap may be.
const evaluationSlack = 5 * time.Second

// canaryGap returns the time between two canaries while a heartbeat is overdue. A live worker
// calls at least once in two such periods.
func canaryGap(p spec.Policy) time.Duration { return max(p.HeartbeatInterval, p.HeartbeatTimeout/3) }

// heartbeatLeft returns the time until the next evaluation of heartbeats; 0 means that the
// execution checks no heartbeat limit.
func (r Run) heartbeatLeft(now time.Time) time.Duration {
	limit := r.Policy.HeartbeatTimeout
	switch {
	case r.Attempt.HeartbeatExempt, r.Attempt.HeartbeatsSwept:
		return 0
	case r.Attempt.LastContactAt.IsZero():
		return limit
	case !r.Attempt.ReachableSince.IsZero():
		return max(min(r.Attempt.ReachableSince.Add(limit).Sub(now), canaryGap(r.Policy)), time.Second)
	}
	return max(r.Attempt.LastContactAt.Add(limit).Sub(now), time.Second)
}

// check ends the attempt of a worker that stopped sending heartbeats, and reports whether it
// did. The commit is conditional on the last heartbeat.
//
// A missing heartbeat is proof only while heartbeats can be received. If the canary is not
// received, the limit restarts. Otherwise the worker must be silent for the whole limit since
// calls can be received. That time is taken from the canaries of all processes, or from those
// sent for this attempt. If the former are so far apart that an outage between two of them can
// explain the silence, the worker gets another interval.
func (c Contact) check(d *draft) (dead bool) {
	a, limit, interval := &d.Attempt, d.Policy.HeartbeatTimeout, d.Policy.HeartbeatInterval
	overdue := d.Overdue(c.LastAt, d.now)
	d.contacted(c.LastAt)
	if !overdue {
		return false
	}
	if !c.Reception.Received {
		a.LastContactAt, a.ReachableSince, a.ReachableAt = d.now, time.Time{}, time.Time{}
		return false
	}
	gap, longest := d.now.Sub(a.ReachableAt), canaryGap(d.Policy)
	if a.HeartbeatsSwept {
		longest = max(longest, c.Reception.Gap) // only sweeps evaluate the attempt
	}
	if a.ReachableSince.IsZero() || gap < 0 || gap > longest+evaluationSlack {
		a.ReachableSince = d.now
	}
	a.ReachableAt = d.now
	silent := func(since time.Time) bool { return !d.now.Before(later(a.LastContactAt, since).Add(limit)) }
	all := c.Reception
	proven := !all.Since.IsZero() && all.Gap < limit &&
		(all.Gap+interval <= limit || d.now.Sub(a.ReachableSince) >= interval)
	if !silent(a.ReachableSince) && !(proven && silent(all.Since)) {
		return false
	}
	d.emit(Event{
		Type: EventZombieDetected,
		Message: fmt.Sprintf("the last contact with worker %s was at %s",
			a.WorkerID, later(c.LastAt, a.StartedAt).Format(time.RFC3339Nano)),
	})
	why := fault.New(fault.HeartbeatTimeout, "no heartbeat from worker %s for %s", a.WorkerID, limit)
	d.endAttempt(OutcomeFailed, why.Message, why)
	d.heartbeat.Evaluated = c.LastAt
	return true
}

// HeartbeatsChecked: a sweep found an overdue heartbeat. It evaluates a worker whose heartbeats
// are not forwarded to the execution.
type HeartbeatsChecked struct{ Contact }

func (f HeartbeatsChecked) apply(d *draft) error {
	if d.State != Running || d.EndRequest() != nil || d.Attempt.WorkerID == "" || !d.Attempt.HeartbeatsSwept {
		return nil
	}
	before := d.Attempt
	if !f.check(d) && d.Attempt != before {
		d.changed = true
	}
	return nil
}

// contacted records a newer call of the worker, which resets ReachableSince and ReachableAt.
func (d *draft) contacted(at time.Time) {
	if at.After(d.Attempt.LastContactAt) {
		d.Attempt.LastContactAt, d.Attempt.ReachableSince, d.Attempt.ReachableAt = at, time.Time{}, time.Time{}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
