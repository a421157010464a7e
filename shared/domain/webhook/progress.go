package webhook

import (
	"slices"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/base/retry"
)

// The rate limits of deliveries.
const (
	// Parallel is the maximum number of parallel attempts of a webhook.
	Parallel = 10
	// MaxPending is the number of pending deliveries at which a webhook takes no further events
	// from the stream.
	MaxPending = 1000
	// OpenAfter is the number of consecutive failures after which attempts are made one at a
	// time, with pauses.
	OpenAfter = 5
	// MaxHold is the longest pause that the receiver can request for a webhook.
	MaxHold = time.Hour
	// LeaseTime is how long a worker may take for a batch of attempts.
	LeaseTime = 2 * AttemptTime
	// LeaseSlack is the maximum time after the end of a lease until another worker continues.
	// Batches within it leave WakeAt unchanged, because it is the key of an index.
	LeaseSlack = LeaseTime / 3
	// Housekeeping is how often a worker processes a webhook without events.
	Housekeeping = time.Hour
)

// A receiver is lost after a time without a success, if its first and its last failure are at
// least FailureSpan apart.
const (
	WarnAfter    = 24 * time.Hour
	DisableAfter = 5 * 24 * time.Hour
	FailureSpan  = 12 * time.Hour
)

var (
	slow = retry.Backoff{First: time.Second, Most: time.Minute, Multiplier: 2}
	open = retry.Backoff{First: 10 * time.Second, Most: 5 * time.Minute, Multiplier: 2}
)

// Progress is the progress of a webhook's deliveries.
type Progress struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	// Version counts the changes; 0 before it is stored.
	Version int64 `json:"version"`
	// Cursor is the position up to which events were taken from the stream. Epoch is the epoch
	// of the stream.
	Cursor int64  `json:"cursor"`
	Epoch  string `json:"epoch,omitempty"`
	// Pending counts the pending deliveries.
	Pending int `json:"pending,omitempty"`
	// WakeAt is when a worker must process the webhook next.
	WakeAt time.Time `json:"wakeAt"`
	Lease  Lease     `json:"lease,omitzero"`
	// Again: the webhook had new work while another worker had the lease.
	Again bool `json:"again,omitempty"`
	// Missed are the newest ranges of events that were not delivered because the webhook was
	// paused or disabled.
	Missed []Range `json:"missed,omitempty"`
	// Replays are the unfinished redeliveries.
	Replays []Replay `json:"replays,omitempty"`
	// Taken is the place of the last replay that was taken from the stream of replays.
	Taken  Place  `json:"taken,omitzero"`
	Health Health `json:"health"`
}

// Lease is the exclusive right of one worker to deliver.
type Lease struct {
	Owner string    `json:"owner"`
	Until time.Time `json:"until"`
}

// Range is a range of positions, including both ends.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Place is a position in a stream.
type Place struct {
	Epoch    string `json:"epoch"`
	Position int64  `json:"position"`
}

// Replay is the redelivery of a range. Next is its next position. Sent of Total events were
// taken.
type Replay struct {
	// ID is the id of an accepted replay; empty for a redelivery.
	ID string `json:"id,omitempty"`
	Range
	// Failed selects the events whose delivery failed, and the missed events.
	Failed bool `json:"failed,omitempty"`
	// Filter selects events of the range, in addition to the filter of the webhook; nil selects
	// all.
	Filter *events.Filter `json:"filter,omitempty"`
	Next   int64          `json:"next"`
	Sent   int            `json:"sent,omitempty"`
	Total  int            `json:"total"`
}

// NextAttempt returns when the next attempt of a pending delivery can be made: not before now,
// and not before Health.HeldUntil. It is zero for a delivery that has ended.
func (p Progress) NextAttempt(d Delivery, now time.Time) time.Time {
	if d.State != Pending {
		return time.Time{}
	}
	next := now
	for _, at := range []time.Time{d.Due, p.Health.HeldUntil} {
		if at.After(next) {
			next = at
		}
	}
	return next
}

// HasMissed reports whether the event at the position was not delivered because the webhook was
// paused or disabled.
func (p Progress) HasMissed(position int64) bool {
	return slices.ContainsFunc(p.Missed, func(r Range) bool { return r.From <= position && position <= r.To })
}

// Health describes the responses of a receiver.
type Health struct {
	// Since is when the webhook was created or enabled. LastSuccess is the time of the last
	// successful attempt. FirstFailure and LastFailure are the times of the failures after it.
	Since        time.Time `json:"since"`
	LastSuccess  time.Time `json:"lastSuccess,omitzero"`
	FirstFailure time.Time `json:"firstFailure,omitzero"`
	LastFailure  time.Time `json:"lastFailure,omitzero"`
	// Failures counts consecutive failures.
	Failures int `json:"failures,omitempty"`
	// HeldUntil: no attempt is made before this time.
	HeldUntil time.Time `json:"heldUntil,omitzero"`
	// Window is the number of parallel attempts after a failure; 0 means Parallel.
	Window int `json:"window,omitempty"`
	// Tokens is the number of attempts that the rate limit permitted at TokensAt.
	Tokens   float64   `json:"tokens,omitempty"`
	TokensAt time.Time `json:"tokensAt,omitzero"`
	// Gone: the receiver answered 410. Warned: the warning about failures was published.
	Gone   bool `json:"gone,omitempty"`
	Warned bool `json:"warned,omitempty"`
}

// The limits of the lists of a Progress.
const (
	MaxReplays = 10
	keptMissed = 20
)

// Begin returns the progress of a webhook that gets the events after a position.
func (w Webhook) Begin(cursor int64, epoch string, now time.Time) Progress {
	return Progress{Tenant: w.Tenant, ID: w.ID, Cursor: cursor, Epoch: epoch, WakeAt: now, Health: Health{Since: now}}
}

// Ref returns the reference of the webhook.
func (p Progress) Ref() Ref { return Ref{p.Tenant, p.ID} }

// Enable returns the progress of a webhook that sends again. The events up to newest are
// missed; pending deliveries continue.
func (p Progress) Enable(newest int64, now time.Time) Progress {
	if newest > p.Cursor {
		missed := append([]Range{}, p.Missed...)
		missed = append(missed, Range{p.Cursor + 1, newest})
		p.Missed, p.Cursor = missed[max(len(missed)-keptMissed, 0):], newest
	}
	p.Health = Health{Since: now, LastSuccess: p.Health.LastSuccess}
	p.WakeAt = now
	return p
}

// Took reports whether the replay at the place was taken.
func (p Progress) Took(at Place) bool {
	return p.Taken.Epoch == at.Epoch && p.Taken.Position >= at.Position
}

// Take returns the progress with the replay at the place added.
func (p Progress) Take(r Replay, at Place, now time.Time) Progress {
	p.Replays, p.Taken, p.WakeAt = append(slices.Clone(p.Replays), r), at, now
	return p
}

// Acquire gives the lease to owner, or records in Again that there is new work. changed reports
// that the result must be stored.
func (p Progress) Acquire(owner string, now time.Time) (_ Progress, acquired, changed bool) {
	if p.Lease.Owner != "" && p.Lease.Owner != owner && now.Before(p.Lease.Until) {
		changed = !p.Again
		p.Again = true
		return p, false, changed
	}
	p.Again = false
	return p.Renew(owner, now), true, true
}

// Renew extends the lease. If its owner does not return, another worker continues at most
// LeaseSlack after its end.
func (p Progress) Renew(owner string, now time.Time) Progress {
	until := now.Add(LeaseTime)
	if p.Lease.Owner != owner || p.WakeAt.Before(until) {
		p.WakeAt = until.Add(LeaseSlack)
	}
	p.Lease = Lease{owner, until}
	return p
}

// Release ends the lease. next is when there is work to do; zero if unknown.
func (p Progress) Release(next, now time.Time) Progress {
	p.Lease, p.Again, p.WakeAt = Lease{}, false, now.Add(Housekeeping)
	if !next.IsZero() && next.Before(p.WakeAt) {
		p.WakeAt = next
	}
	return p
}

// Window returns how many attempts may be made now, at most Parallel. If it is 0, next is when
// attempts may be made again. rate is the rate limit; 0 means no limit.
func (p Progress) Window(rate int, now time.Time) (attempts int, next time.Time) {
	h := p.Health
	if now.Before(h.HeldUntil) {
		return 0, h.HeldUntil
	}
	attempts = Parallel
	if h.Window > 0 {
		attempts = min(attempts, h.Window)
	}
	if rate == 0 {
		return attempts, time.Time{}
	}
	tokens := h.tokens(rate, now)
	if tokens < 1 {
		return 0, now.Add(time.Duration((1 - tokens) / float64(rate) * float64(time.Second))).Add(time.Millisecond)
	}
	return min(attempts, int(tokens)), time.Time{}
}

// tokens returns the number of attempts that the rate limit permits now, at most those of one
// second.
func (h Health) tokens(rate int, now time.Time) float64 {
	most := float64(rate)
	if h.TokensAt.IsZero() {
		return most
	}
	return min(most, h.Tokens+max(now.Sub(h.TokensAt).Seconds(), 0)*most)
}

// Result is the result of an attempt of a delivery.
type Result struct {
	Delivery Delivery
	Attempt  Attempt
	// RetryAfter is the pause that the receiver requests; 0 means no pause.
	RetryAfter time.Duration
}

// Settle returns the progress and the deliveries after attempts that ended now. rate is the
// rate limit of the webhook, retention that of the delivery log.
func (p Progress) Settle(results []Result, rate int, retention time.Duration, now time.Time, chance func() float64) (Progress, []Delivery) {
	settled := make([]Delivery, 0, len(results))
	if rate > 0 {
		p.Health.Tokens, p.Health.TokensAt = p.Health.tokens(rate, now)-float64(len(results)), now
	}
	for _, r := range results {
		p.Health = p.Health.after(r, now, chance())
		settled = append(settled, r.Delivery.attempted(r.Attempt, now, retention, chance()))
	}
	return p.Count(settled), settled
}

// Count returns the progress with the number of pending deliveries updated for the changed
// ones.
func (p Progress) Count(changed []Delivery) Progress {
	for _, d := range changed {
		if d.WasPending {
			p.Pending--
		}
		if d.State == Pending {
			p.Pending++
		}
	}
	return p
}

func (h Health) after(r Result, now time.Time, chance float64) Health {
	if r.Attempt.Succeeded() {
		h.LastSuccess, h.FirstFailure, h.LastFailure = now, time.Time{}, time.Time{}
		h.Failures, h.Warned = 0, false
		if h.Window > 0 {
			if h.Window *= 2; h.Window >= Parallel {
				h.Window = 0
			}
		}
	} else {
		h.LastFailure = now
		if h.FirstFailure.IsZero() {
			h.FirstFailure = now
		}
		h.Failures++
		h.Gone = h.Gone || r.Attempt.Status == statusGone
		if h.Failures >= OpenAfter {
			h = h.hold(jittered(open.Delay(h.Failures-OpenAfter), chance), now)
		} else if r.Attempt.throttles() {
			h = h.hold(jittered(slow.Delay(h.Failures-1), chance), now)
		}
	}
	if r.RetryAfter > 0 {
		h = h.hold(min(r.RetryAfter, MaxHold), now)
	}
	return h
}

// hold stops all attempts for the pause. After it, one attempt is made alone.
func (h Health) hold(pause time.Duration, now time.Time) Health {
	h.Window = 1
	if until := now.Add(pause); until.After(h.HeldUntil) {
		h.HeldUntil = until
	}
	return h
}

// Verdict returns why the webhook must be disabled now, or ReasonFailing if a warning is due;
// otherwise empty.
func (h Health) Verdict(now time.Time) Reason {
	switch {
	case h.Gone:
		return ReasonGone
	case h.failing(DisableAfter, now):
		return ReasonFailed
	case h.failing(WarnAfter, now) && !h.Warned:
		return ReasonFailing
	}
	return ""
}

func (h Health) failing(after time.Duration, now time.Time) bool {
	success := h.LastSuccess
	if success.Before(h.Since) {
		success = h.Since
	}
	return h.Failures > 0 && now.Sub(success) >= after && h.LastFailure.Sub(h.FirstFailure) >= FailureSpan
}

// Failing reports whether the attempts of a webhook are held back because of failures.
func (h Health) Failing() bool { return h.Failures >= OpenAfter }
