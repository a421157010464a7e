package balance

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"

	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// Lease is a slot of a replica that a task holds.
type Lease struct {
	*replica
	of *Replicas
	id string
	// task is the id of the task that holds the slot.
	task string
	// tokens is the context that the task needs.
	tokens int
	// others are the other replicas of the pool.
	others []*replica
	// deterministic reports that the pool gives the same answer to the same request.
	deterministic bool
	// place is the engine of the pool. wider is the number of slots that Widen has taken.
	place    *platform.EnginePlace
	wider    int
	released bool
}

// Engine returns the engine of the replica.
func (l *Lease) Engine() port.Engine { return l.engine }

// ID returns the id of the replica.
func (l *Lease) ID() string { return l.id }

// ForTenant returns the failure of a request as a tenant may know it: the guest of an offered pool does not
// know the address of the replica.
func (l *Lease) ForTenant(tenant string, failure error) error {
	f, isFault := errors.AsType[*fault.Fault](failure)
	address, err := url.Parse(l.key.url)
	if !isFault || tenant == l.key.tenant || err != nil || !strings.Contains(f.Message, address.Hostname()) {
		return failure
	}
	hidden := *f
	hidden.Message = strings.NewReplacer(address.Host, "replica "+l.id, address.Hostname(), "replica "+l.id).Replace(f.Message)
	return &hidden
}

// notReady says why a replica of a pool is not used; without its address for the guest of an offered pool.
func (r *replica) notReady(pool platform.Pool, reason string, err error) string {
	switch {
	case pool.Origin != nil:
		return "replica " + r.key.id + " is not ready"
	case err != nil:
		return "replica " + r.key.id + " does not answer: " + err.Error()
	}
	return "replica " + r.key.id + " is not ready: " + reason
}

// StillServed reports whether the pool that lookup returns still has the replica. A replica that
// Sortie runs may have started to drain during its health check.
func (l *Lease) StillServed(ctx context.Context, lookup func(context.Context) (platform.Pool, error)) bool {
	if l.key.run == "" {
		return true
	}
	pool, err := lookup(ctx)
	return err == nil && pool.Engine != nil && slices.ContainsFunc(pool.Engine.Replicas, func(now platform.EngineReplica) bool {
		return now.ID == l.key.id && now.Run == l.key.run && now.URL == l.key.url
	})
}

// isLastActiveLocked is IsLastActive for a caller that has locked l.of.mu.
func (l *Lease) isLastActiveLocked() bool {
	now := l.of.clock.Now()
	return !slices.ContainsFunc(l.others, func(other *replica) bool { return !now.Before(other.restUntil) })
}

// IsLastActive reports whether all other replicas of the pool rest.
func (l *Lease) IsLastActive() bool {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return l.isLastActiveLocked()
}

// askAfter is how long the reported capabilities of an engine are used.
const askAfter = time.Minute

// ask asks the engine for its capabilities if the last report is older than askAfter.
func (l *Lease) ask(ctx context.Context) {
	l.of.mu.Lock()
	known := l.askedAt
	l.of.mu.Unlock()
	now := l.of.clock.Now()
	if !known.IsZero() && now.Sub(known) < askAfter {
		return
	}
	l.of.describe(ctx, l.replica)
}

// Capabilities returns the capabilities that the engine last reported.
func (l *Lease) Capabilities() port.EngineCapabilities {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return l.reportedCapabilities
}

// Seed returns the seed of a request. In a deterministic pool, a request without a seed gets 0.
func (l *Lease) Seed(requested *int64) *int64 {
	if requested == nil && l.deterministic {
		return new(int64)
	}
	return requested
}

// CountRequest counts a request of the task at the engine until done is called.
func (l *Lease) CountRequest() (done func()) {
	change := func(by int) {
		l.of.mu.Lock()
		defer l.of.mu.Unlock()
		l.asking += by
	}
	change(1)
	return func() { change(-1) }
}

// Release releases the slot. Further calls do nothing.
func (l *Lease) Release() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.released {
		return
	}
	l.released = true
	delete(l.of.shadows, l)
	l.held, l.replica.tokens = l.held-1-l.wider, l.replica.tokens-l.tokens
	l.of.notify()
}

// MarkReady records that the replica has answered a request in part, so that it counts as ready.
func (l *Lease) MarkReady() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.readyAt = l.of.clock.Now()
}

// RecordResult records the result of a request. A cancelled request, an ended stream and a
// missed deadline prove nothing about the replica. A request that the engine refused as invalid
// proves that it works. The attempts of one task at the replica count once.
func (l *Lease) RecordResult(err error) {
	f, isFault := errors.AsType[*fault.Fault](err)
	answer, answered := errors.AsType[port.EngineAnswer](err)
	switch {
	case err != nil && !isFault, isFault && f.Code == fault.DeadlineUnmet:
	case err == nil, f.Code == fault.InvalidParams, f.Code == fault.ModelUnknown, answered && answer.Works():
		l.of.mu.Lock()
		l.failures, l.failed, l.served, l.readyAt = 0, nil, true, l.of.clock.Now()
		l.of.mu.Unlock()
	default:
		l.of.failed(l, answered)
	}
}

// mostCooling is the longest time for which a replica gets no tasks because it has asked for a
// pause.
const mostCooling = 5 * time.Minute

// Cool returns the pause that the engine requests with an error; 0 without one. The replica counts
// as full meanwhile: it gets no tasks, and those without another replica wait.
func (l *Lease) Cool(err error) time.Duration {
	answer, answered := errors.AsType[port.EngineAnswer](err)
	if !answered || answer.RetryAfter <= 0 {
		return 0
	}
	pause := min(answer.RetryAfter, mostCooling)
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if until := l.of.clock.Now().Add(pause); until.After(l.coolUntil) {
		l.coolUntil = until
	}
	return pause
}

// SlotGrace is the time that an engine has to free the slot of a task that has ended.
const SlotGrace = 5 * time.Second

// AwaitFree waits until the request of the task has left the engine, at most SlotGrace. The
// engine may have the requests of this process and the tasks of other dispatchers. If it has
// more after SlotGrace, the replica rests. A slot without a request does not count: its task
// waits here too, or has not sent its request yet.
func (l *Lease) AwaitFree(ctx context.Context) {
	until := l.of.clock.Now().Add(SlotGrace)
	for looks := 0; ; looks++ {
		if free, known := l.isFree(ctx, until, looks > 0); free {
			return
		} else if !known || !l.of.clock.Now().Before(until) || clock.Sleep(ctx, l.of.clock, freeInterval) != nil {
			break
		}
	}
	l.of.mu.Lock()
	l.restUntil = l.of.clock.Now().Add(restMost)
	l.of.mu.Unlock()
	l.of.record(ctx, series.Count(series.SlotsLeaked, 1, l.key.pool))
	l.of.log.WarnContext(ctx, "a replica keeps the request of a task that has ended; it gets no tasks for a while",
		"pool", l.key.pool, "replica", l.id, "rest", restMost.String())
}

// isFree reports whether the engine has no request besides those of others; it also returns
// true if the engine does not report its load. known is false if the load could not be read.
// With again, an earlier check saw the request. The check then ends at until, and an engine
// that has not answered by then is not free.
func (l *Lease) isFree(ctx context.Context, until time.Time, again bool) (free, known bool) {
	looking, over := ctx, func() {}
	if again {
		looking, over = clock.WithTimeout(ctx, l.of.clock, until.Sub(l.of.clock.Now()))
	}
	defer over()
	load, err := l.engine.Load(looking)
	if err != nil {
		late := looking.Err() != nil && ctx.Err() == nil
		return !late, false
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return load.Running == nil || *load.Running <= l.asking+l.of.others[l.key.id], true
}

// freeInterval is the interval at which AwaitFree reads the load of an engine.
const freeInterval = 50 * time.Millisecond
