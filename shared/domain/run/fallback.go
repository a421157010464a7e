package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// reasonOf returns the fallback reason for the fault of a refused start; empty if the fault is no
// reason.
func reasonOf(f *fault.Fault) platform.FallbackReason {
	switch f.Code {
	case fault.Capacity:
		return platform.FallbackCapacity
	case fault.Image:
		return platform.FallbackImage
	case fault.Throttled:
		return platform.FallbackThrottled
	}
	return ""
}

// Detour records the fallbacks of a run, from its own pool up to the first attempt whose
// machine started.
type Detour struct {
	// Home is the run's own pool, before the first step.
	Home  string       `json:"home"`
	Steps []DetourStep `json:"steps,omitempty"`
	// Leaving: the attempt has ended because of the last step, which leaves its pool. It is
	// false once the next attempt queues for the pool of that step.
	Leaving bool `json:"leaving,omitempty"`
}

// DetourStep is one fallback.
type DetourStep struct {
	// Attempt is the number of the attempt that got no machine in pool From.
	Attempt int                     `json:"attempt"`
	From    string                  `json:"from"`
	To      string                  `json:"to"`
	Reason  platform.FallbackReason `json:"reason"`
	// Message is the error message of From's platform.
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// InFallback reports whether the run is in a fallback pool.
func (r Run) InFallback() bool { return r.Detour != nil && r.Slot.Pool != r.Detour.Home }

// NextPool returns the pool in which the run has a slot, is queued, or queues next.
func (r Run) NextPool() string {
	switch {
	case r.FallsBack():
		return r.Detour.Steps[len(r.Detour.Steps)-1].To
	case r.Detour != nil && r.HasExecution() && r.State == Retrying && (!r.Attempt.StartedAt.IsZero() || r.Attempt.Eviction != nil):
		return r.Detour.Home
	}
	return r.Slot.Pool
}

// LastStep returns the fallback that brought the run to its pool, or will bring it to its next
// one. ok is false if that is the run's own pool.
func (r Run) LastStep() (step DetourStep, ok bool) {
	if r.Detour == nil || len(r.Detour.Steps) == 0 || r.NextPool() == r.Detour.Home {
		return step, false
	}
	return r.Detour.Steps[len(r.Detour.Steps)-1], true
}

// Untried returns the fallbacks whose pool the run has not tried, each pool once.
func (r Run) Untried(fallbacks []platform.Fallback) (open []platform.Fallback) {
	for _, f := range fallbacks {
		known := slices.ContainsFunc(open, func(o platform.Fallback) bool { return o.Pool == f.Pool })
		if !known && !r.tried(f.Pool) {
			open = append(open, f)
		}
	}
	return open
}

// ownPool returns the pool that the run was created for.
func (r Run) ownPool() string {
	if r.Detour != nil {
		return r.Detour.Home
	}
	return r.Slot.Pool
}

// tried reports whether the run has been in the pool since it left its own.
func (r Run) tried(pool string) bool {
	if pool == r.Slot.Pool {
		return true
	}
	return r.Detour != nil && (pool == r.Detour.Home ||
		slices.ContainsFunc(r.Detour.Steps, func(s DetourStep) bool { return s.From == pool || s.To == pool }))
}

// fallbackOf returns the first fallback that applies to the reason and whose pool the run has
// not tried. waited is how long starts of the attempt have been throttled.
func (r Run) fallbackOf(fallbacks []platform.Fallback, reason platform.FallbackReason, waited time.Duration) (f platform.Fallback, ok bool) {
	i := slices.IndexFunc(fallbacks, func(f platform.Fallback) bool {
		return reason != "" && slices.Contains(f.On, reason) && !r.tried(f.Pool) && (reason != platform.FallbackThrottled || waited >= f.ThrottledFor)
	})
	if i < 0 {
		return f, false
	}
	return fallbacks[i], true
}

// fallBack ends an attempt whose start was refused or failed, if there is a fallback for the
// reason. It reports whether it did. Terminating then proves that no machine of the attempt
// runs, before the next attempt queues for the other pool.
func (d *draft) fallBack(fallbacks []platform.Fallback, why *fault.Fault) bool {
	reason := reasonOf(why)
	if reason == platform.FallbackThrottled {
		if d.Attempt.ThrottledSince.IsZero() {
			d.Attempt.ThrottledSince = d.now
		}
		d.Attempt.ThrottledMessage, d.Attempt.FallbackBy, d.changed = why.Message, time.Time{}, true
	}
	var waited time.Duration
	if !d.Attempt.ThrottledSince.IsZero() {
		waited = d.now.Sub(d.Attempt.ThrottledSince)
	}
	if d.Attempt.MaybeCreated && reason == platform.FallbackThrottled {
		return false // the throttling does not show whether an earlier call created the machine
	}
	to, ok := d.fallbackOf(fallbacks, reason, waited)
	if !ok || d.Cancel != nil {
		if reason == platform.FallbackThrottled {
			if next, found := d.fallbackOf(fallbacks, reason, platform.MaxThrottledFor); found {
				d.Attempt.FallbackBy = d.Attempt.ThrottledSince.Add(next.ThrottledFor)
			}
		}
		return false
	}
	detour := Detour{Home: d.Slot.Pool}
	if d.Detour != nil {
		detour = *d.Detour
	}
	detour.Leaving = true
	detour.Steps = append(slices.Clone(detour.Steps), DetourStep{
		Attempt: d.Attempt.Number, From: d.Slot.Pool, To: to.Pool, Reason: reason, Message: why.Message, At: d.now,
	})
	d.Detour = &detour
	d.emit(Event{Type: EventStartRefused, Message: fmt.Sprintf("pool %s: %s; falls back to pool %s", d.Slot.Pool, why.Message, to.Pool), Fault: why})
	d.endAttempt(OutcomeFailed, "falls back to pool "+to.Pool, why)
	return true
}

// throttledLong applies a fallback once FallbackBy has passed while the queued run still waits
// for a permitted start. fallbacks are the current ones; if none applies, the run stays queued.
func (d *draft) throttledLong(fallbacks []platform.Fallback) bool {
	by := d.Attempt.FallbackBy
	if d.State != ContainerCreating || by.IsZero() || d.now.Before(by) {
		return false
	}
	return d.fallBack(fallbacks, fault.New(fault.Throttled, "%s", d.Attempt.ThrottledMessage))
}

// laterFallback returns FallbackBy if it is in the future, otherwise zero.
func (d *draft) laterFallback() time.Time {
	if d.now.Before(d.Attempt.FallbackBy) {
		return d.Attempt.FallbackBy
	}
	return time.Time{}
}

// queueWake returns when a queued run is evaluated: at the end of its queue timeout, or earlier
// when it can fall back.
func (r Run) queueWake() time.Time {
	by := r.QueueBy()
	if at := r.Attempt.FallbackBy; r.State == ContainerCreating && !at.IsZero() && at.Before(by) {
		return at
	}
	return by
}

// undoFallback undoes the last fallback, because the machine of the attempt may still run. The
// attempt counts as one that did not start.
func (d *draft) undoFallback() {
	detour := *d.Detour
	detour.Leaving, detour.Steps = false, detour.Steps[:len(detour.Steps)-1]
	d.Detour = &detour
	if len(detour.Steps) == 0 {
		d.Detour = nil
	}
}

// FallsBack reports whether the attempt ended because its run falls back to another pool.
func (r Run) FallsBack() bool { return r.Detour != nil && r.Detour.Leaving }

// enterPool sets the pool of the next attempt: that of the last fallback, or the run's own pool
// if the machine of the attempt had started or its pool drains. An inference task stays in its
// fallback.
func (d *draft) enterPool() {
	switch {
	case d.Detour == nil:
		return
	case d.Detour.Leaving:
		detour := *d.Detour
		detour.Leaving = false
		d.Slot.Pool, d.Detour = detour.Steps[len(detour.Steps)-1].To, &detour
		if to, ok := d.Routes.Of(d.Slot.Pool); ok {
			d.Run = d.at(to)
		}
	case !d.HasExecution():
	case !d.Attempt.StartedAt.IsZero() || d.Attempt.Eviction != nil:
		d.Slot.Pool, d.Detour = d.Detour.Home, nil
	}
}

// withDetour returns the fault of a start with the messages of the platforms that the run has
// tried before.
func (d *draft) withDetour(f *fault.Fault) *fault.Fault {
	if d.Detour == nil || !d.InFallback() {
		return f
	}
	longer := *f
	longer.Message = fmt.Sprintf("pool %s: %s", d.Slot.Pool, f.Message)
	for _, s := range d.Detour.Steps {
		longer.Message += fmt.Sprintf("; before, pool %s: %s", s.From, s.Message)
	}
	longer.Message = limit.Cut(longer.Message, limit.Message)
	return &longer
}
