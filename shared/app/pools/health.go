package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Health is the state of a pool.
type Health struct {
	View
	// Machines is the number of machines of runs with a slot. Of these, Starting were not seen
	// running yet, Running are running, and Ending belong to ended attempts.
	Machines, Starting, Running, Ending int
	// Remaining are the first runs that hold a slot, at most healthRemaining.
	Remaining []run.Run
	// Waiting are the first runs of the queue, in its order, at most healthRemaining.
	Waiting []run.Run
	// DrainPhase is empty if the pool is not draining. Left is the number of runs that still
	// hold a slot; in a pool without a limit, at most healthRuns.
	DrainPhase fleet.DrainPhase
	Left       int
	// Starts is the number of measured starts. StartP50 and StartP99 are the 50th and 99th
	// percentile of their durations.
	Starts             int
	StartP50, StartP99 time.Duration
	// StartRate is the number of starts per second that the limits of all apps permit now. It
	// is lower while the platform throttles permitted starts. It is zero before the first
	// start, and if the platform documents no limit and has throttled no start. NextStart is
	// the time of the next permitted start; zero if one is permitted now.
	StartRate float64
	NextStart time.Time
	// RecentRate is the number of starts per second in the last minute. It counts the newest
	// runs and the runs with a slot.
	RecentRate float64
	// Expected is the expected start of a run with normal priority that is submitted now. It is
	// nil if the start depends on a person or the queue is full.
	Expected *explain.Expected
	// At is the time of the reading.
	At time.Time
	// LongestWait is how long the first run of the queue has waited.
	LongestWait time.Duration
	// Replicas are the replicas of an engine pool. A process that asks no engines has only
	// those that Sortie runs.
	Replicas []balance.ReplicaHealth
	// Warm counts the warm machines by their state.
	Warm map[platform.WarmState]int
	// Errors are the last failures of the platform, the newest first.
	Errors []capacity.FailureGroup
	// LastError is the newest failure of an attempt among the runs that hold a slot and
	// those at the head of the queue; nil without one.
	LastError *fault.Fault
}

// Health returns the state of a pool. It reads at most healthRuns runs with a slot and as many
// queued runs. Fault: NotFound.
func (s *Pools) Health(ctx context.Context, who port.Identity, id string) (h Health, err error) {
	if h.View, err = s.Pool(ctx, who, id); err != nil {
		return h, err
	}
	held, err := runsOf(ctx, s.store, who.Tenant, id, s.store.Holders)
	if err != nil {
		return h, err
	}
	queued, err := runsOf(ctx, s.store, who.Tenant, id, s.store.Queue)
	if err != nil {
		return h, err
	}
	if h.Draining {
		if held, err = s.remaining(ctx, h.Pool, held); err != nil {
			return h, err
		}
	}
	for _, r := range held {
		if r.Attempt.Machine.Known() {
			h.Machines++
			switch r.State {
			case run.ContainerCreating:
				h.Starting++
			case run.Running:
				h.Running++
			case run.Terminating:
				h.Ending++
			}
		}
	}
	warm, err := s.store.WarmMachines(ctx, h.Ref())
	if err != nil {
		return h, fmt.Errorf("cannot read the warm machines of pool %s: %w", id, err)
	}
	h.Warm = map[platform.WarmState]int{}
	for _, w := range warm {
		h.Warm[w.Phase]++
	}
	h.DrainPhase, h.Left = fleet.DrainPhaseOf(h.Pool, held, len(warm), s.now()), max(h.Held, len(held))
	if h.Replicas, err = s.replicaHealths(ctx, h.Pool); err != nil {
		return h, err
	}
	h.Remaining = held[:min(len(held), healthRemaining)]
	if err := s.startFigures(ctx, &h, held); err != nil {
		return h, err
	}
	if h.Errors, err = s.capacity.Failures.Groups(ctx, h.Ref()); err != nil {
		return h, err
	}
	h.Waiting = queued[:min(len(queued), healthRemaining)]
	if len(queued) > 0 && queued[0].Queued() {
		h.LongestWait = max(s.now().Sub(queued[0].Slot.Since), 0)
	}
	all := slices.Concat(held, queued)
	slices.SortStableFunc(all, func(a, b run.Run) int { return cmp.Compare(b.Attempt.EndedAt.UnixNano(), a.Attempt.EndedAt.UnixNano()) })
	if i := slices.IndexFunc(all, func(r run.Run) bool { return r.Fault != nil }); i >= 0 {
		h.LastError = all[i].Fault
	}
	return h, nil
}

// startFigures fills in the durations and rates of starts, and the expected start of a new run.
func (s *Pools) startFigures(ctx context.Context, h *Health, held []run.Run) error {
	h.At = s.now()
	measured, err := s.capacity.Estimates.Measured(ctx, h.Tenant, h.ID)
	if err != nil {
		return err
	}
	h.Starts, h.StartP50, h.StartP99 = measured.Starts()
	limiter, err := s.store.StartLimiter(ctx, h.ID)
	if err != nil {
		return fmt.Errorf("cannot read the pace of the starts of pool %s: %w", h.ID, err)
	}
	h.StartRate = limiter.Rate()
	if limiter.Paced(s.now()) {
		h.NextStart = limiter.Permit()
	}
	if h.RecentRate, err = s.recentRate(ctx, h.Pool, held); err != nil {
		return err
	}
	kind := spec.KindJob
	if h.Engine != nil {
		kind = spec.KindInference
	}
	next := run.New(run.Run{
		Tenant: h.Tenant, Work: spec.Work{Kind: kind}, Policy: s.config.Policy, Slot: platform.Slot{Pool: h.ID, QueueLimit: h.QueueLimit}, Priority: spec.PriorityNormal,
	}, h.At).Run
	facts, err := s.runs.Facts(ctx, next)
	if err != nil {
		return fmt.Errorf("cannot estimate the wait in pool %s: %w", h.ID, err)
	}
	h.Expected = explain.Plan(next, facts).Expected
	return nil
}

// recentSpan is the period in which RecentRate counts starts.
const recentSpan = time.Minute

// recentRate returns the number of starts per second in the last minute. If all of the newest
// runs are younger, it is the rate since the oldest of them.
func (s *Pools) recentRate(ctx context.Context, p platform.Pool, held []run.Run) (perSecond float64, err error) {
	now := s.now()
	newest, _, err := s.store.List(ctx, p.Tenant, port.Page{Limit: healthRuns})
	if err != nil {
		return 0, fmt.Errorf("cannot read the newest runs: %w", err)
	}
	since := now.Add(-recentSpan)
	if len(newest) == healthRuns && newest[healthRuns-1].CreatedAt.After(since) {
		since = newest[healthRuns-1].CreatedAt
	}
	counted := map[string]bool{}
	for _, r := range slices.Concat(newest, held) {
		at := r.Attempt.StartedAt
		if r.Slot.Pool == p.ID && !at.IsZero() && at.After(since) && !at.After(now) {
			counted[r.ID] = true
		}
	}
	return float64(len(counted)) / max(now.Sub(since), time.Second).Seconds(), nil
}

// healthRemaining is the maximum length of Health.Remaining and Health.Waiting.
const healthRemaining = 20

// healthRuns is the maximum number of runs with a slot, and of queued runs, that Health reads.
const healthRuns = 100

// runsOf reads the runs of a pool that list returns, at most healthRuns.
func runsOf(
	ctx context.Context, store port.RunStore, tenant, pool string, list func(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error),
) (runs []run.Run, err error) {
	refs, err := list(ctx, tenant, pool, healthRuns)
	if err != nil {
		return nil, fmt.Errorf("cannot read the runs of pool %s: %w", pool, err)
	}
	for _, ref := range refs {
		r, err := store.Load(ctx, ref)
		if errors.Is(err, port.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read run %s: %w", ref.ID, err)
		}
		runs = append(runs, r)
	}
	return runs, nil
}
