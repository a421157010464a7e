package runs

import (
	"context"
	"errors"
	"slices"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/app/host"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Lifecycle commits facts of every kind. It acts on the effects of a commit once;
// the sweep repeats those that fail. A slot that a commit releases is granted to
// the next queued run, if possible in the same transaction. It is safe for
// concurrent use.
type Lifecycle struct {
	*Records
	*forecasts
	*effects
	queue     *capacity.QueueLimit
	maxEvents int
	host      host.Programs
	// forwardLimit is Config.ForwardLimit.
	forwardLimit *int
	// tasks serves inference tasks.
	tasks TaskServer
	// refusals stores the platform failures of pools.
	refusals *capacity.Failures
	// keeper updates the replicas of pools; nil leaves them to the sweep.
	keeper ReplicaKeeper
	// known has the caches that the use cases of the process share.
	known *capacity.Caches
}

// NewLifecycle returns a Lifecycle. Config.Pool is the pool of a run that names none. actions,
// replicas and tasks say which work follows a commit of this process.
func NewLifecycle(
	records *Records, executions port.Executions, actions EndActions, replicas ReplicaRuns, tasks TaskServer, config Config,
) *Lifecycle {
	known := capacity.New(records.store, records.clock, records.log, config.StandardPool())
	records = records.observedBy(tasks)
	s := &Lifecycle{
		Records:   records,
		forecasts: &forecasts{constraints: &constraints{records, config.Policy}, pools: known.Pools, estimates: known.Estimates},
		effects:   &effects{Records: records, executions: executions},
		tasks:     tasks, known: known, queue: known.Queue, refusals: known.Failures,
		maxEvents: config.MaxEvents, forwardLimit: config.ForwardLimit, host: config.Host,
	}
	s.actions, s.keeper = actions.actions(s, config), replicas.keeper(s, config)
	return s
}

// GeneratesFor reports whether an engine has sent a part of an unfinished answer of a session to
// the dispatcher of this process.
func (s *Lifecycle) GeneratesFor(tenant, session string) bool {
	return s.tasks.GeneratesFor(tenant, session)
}

// apply reads a run and calls applyTo.
func (s *Lifecycle) apply(ctx context.Context, ref run.Ref, f fact) (run.Run, error) {
	r, err := s.store.Load(ctx, ref)
	if err != nil {
		return run.Run{}, err
	}
	return s.applyTo(ctx, r, f)
}

// applyTo decides a fact about a record that was just read, commits the decision
// and acts on it. It returns the newest record, changed or not.
func (s *Lifecycle) applyTo(ctx context.Context, r run.Run, f fact) (run.Run, error) {
	return s.decide(ctx, r, f, s.commit)
}

// commit writes a decision and acts on it. In the same transaction it grants released slots of
// the pool, the job and the key to the first queued runs.
func (s *Lifecycle) commit(ctx context.Context, d run.Decision) (run.Run, error) {
	return s.commitWith(ctx, d, nil)
}

// commitWith is commit with decisions about other runs in the same transaction. Those decisions
// must not release slots. It returns ErrConflict if one of the runs has changed.
func (s *Lifecycle) commitWith(ctx context.Context, d run.Decision, with []run.Decision) (after run.Run, err error) {
	d, undo := withCalls(ctx, d)
	defer func() {
		if err != nil {
			undo()
		}
	}()
	given := append([]run.Decision{d}, with...)
	given = slices.Clip(given) // appends of a try copy the slice
	released := releasedPools(d)
	var left, full []string // released pools that may have a free slot after the commit
	for range port.CommitTries {
		decisions := given
		var limiter *fleet.StartLimiter
		left = left[:0]
		for _, pool := range released {
			first, err := s.nextQueued(ctx, d.Run.Tenant, pool)
			if err != nil {
				return run.Run{}, err
			}
			if stale := decidedTwice(given, first.decisions); stale != nil {
				return run.Run{}, stale
			}
			if len(first.decisions) == 0 || pool == d.Run.JobSlot.Pool && mayLeaveMore(d.Run, first.decisions[0].Run) {
				left = append(left, pool)
			}
			if first.limiter != nil { // the limiter is written with the last decision
				decisions, limiter = append(decisions, first.decisions...), first.limiter
			} else {
				decisions = slices.Insert(decisions, 1, first.decisions...)
			}
		}
		err := s.write(ctx, decisions, limiter)
		conflict, lost := errors.AsType[*port.Conflict](err)
		missing, none := errors.AsType[*port.NoSlot](err)
		switch {
		case lost && !slices.ContainsFunc(given, func(d run.Decision) bool { return d.Run.Ref() == conflict.Ref }):
			continue // the queued run changed; read the queue again
		case none && slices.Contains(released, missing.Pool):
			// The limit was lowered, or another run has the slot.
			full = append(full, missing.Pool)
			released = slices.DeleteFunc(released, func(pool string) bool { return pool == missing.Pool })
			continue
		case err != nil:
			return run.Run{}, err
		}
		for _, pool := range slices.Concat(left, full, awaitedPools(d), joinedPools(decisions)) {
			s.fill(ctx, d.Run.Tenant, pool)
		}
		if d.Lease == run.LeaseRelease || d.Lease == run.LeaseDequeue {
			s.fillSharing(ctx, d.Run)
		}
		for i := range given {
			s.actForJob(ctx, &given[i].Run, given[i].Effects)
		}
		s.keepFor(ctx, &d.Run)
		d.Run.Version++
		return d.Run, nil
	}
	return run.Run{}, fault.New(fault.Unavailable, "too many concurrent changes of the pool's queue; retry")
}

// mayLeaveMore reports whether the next run, once it has the job slot of the ended one, may
// leave more slots of the job free than that one did. A run with RequirePreviousSuccess takes
// the only slot; after that, the other slots are free.
func mayLeaveMore(ended, next run.Run) bool {
	return next.JobSlot.Limit != ended.JobSlot.Limit || next.Constraints != nil && next.Constraints.RequirePreviousSuccess
}

// releasedPools returns the pools of which a decision releases a slot.
func releasedPools(d run.Decision) (pools []string) {
	if d.Lease == run.LeaseRelease {
		pools = append(pools, d.Run.Slot.Pool)
	}
	if d.JobLease == run.LeaseRelease {
		pools = append(pools, d.Run.JobSlot.Pool)
	}
	if d.KeyLease == run.LeaseRelease {
		pools = append(pools, d.Run.KeySlot.Pool)
	}
	return pools
}

// decidedTwice returns a conflict if a grant is for the run of a given decision. That run was
// queued after it was read, so the given decision is stale.
func decidedTwice(given, grants []run.Decision) error {
	for _, grant := range grants {
		if slices.ContainsFunc(given, func(d run.Decision) bool { return d.Run.Ref() == grant.Run.Ref() }) {
			return &port.Conflict{Ref: grant.Run.Ref()}
		}
	}
	return nil
}

// awaitedPools returns the pool of the job whose queue the run joins or leaves. A slot may have
// been released since the run found none, or the next run may need less than this one.
func awaitedPools(d run.Decision) []string {
	switch d.JobLease {
	case run.LeaseEnqueue, run.LeaseRequeue, run.LeaseDequeue:
		return []string{d.Run.JobSlot.Pool}
	}
	return nil
}

// write commits decisions together, with the limiter of the last one, and acts on
// their effects.
func (s *Lifecycle) write(ctx context.Context, decisions []run.Decision, limiter *fleet.StartLimiter) error {
	made, err := s.commitWithEffects(ctx, decisions, func(ctx context.Context) error { return s.Records.write(ctx, decisions, limiter) })
	if err != nil {
		return err
	}
	ctx = WithEffectBudget(ctx)
	for i := range decisions {
		s.queue.Committed(&decisions[i])
	}
	for i := range decisions {
		s.act(ctx, &decisions[i].Run, decisions[i].Effects, made)
	}
	for i := range decisions {
		d := &decisions[i]
		s.refusals.Note(ctx, platform.PoolRef{Tenant: d.Run.Tenant, ID: d.Run.Slot.Pool}, s.now(), d.Refusals...)
	}
	return nil
}
