package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/explain"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// PoolHealth is the state of a pool.
type PoolHealth struct {
	PoolView
	// Machines is the number of machines of the runs that hold a slot: Starting of them
	// were not observed running yet, Running run, and Ending are those of ended attempts.
	Machines, Starting, Running, Ending int
	// Remaining are the first runs that hold a slot, at most healthRemaining.
	Remaining []run.Run
	// DrainPhase is empty if the pool does not drain. Left is then the number of runs that
	// hold a slot, of the first healthRuns in a pool without a limit.
	DrainPhase run.DrainPhase
	Left       int
	// Starts is the number of measured starts. Half of them took StartP50, 99 of 100
	// StartP99 at most.
	Starts             int
	StartP50, StartP99 time.Duration
	// StartRate is how many starts a second the limits of all apps permit now: fewer while
	// the platform throttles permitted starts. It is zero if the platform documents no limit
	// and has throttled none, and before the first start. NextStart is when the next start is
	// permitted; zero if one is permitted now.
	StartRate float64
	NextStart time.Time
	// RecentRate is how many starts a second there were in the last minute: of the newest
	// runs and of those that hold a slot.
	RecentRate float64
	// Expected is when a run of priority normal would start that is submitted now, as its
	// plan says; nil if that depends on a person, and in a pool with a full queue.
	Expected *explain.Expected
	// At is the time of the reading.
	At time.Time
	// LongestWait is how long the first run of the queue has waited.
	LongestWait time.Duration
	// Replicas are those of a pool of an engine: servers at addresses in a process that asks
	// engines, those that Sortie runs in each process.
	Replicas []ReplicaHealth
	// Warm counts the warm machines by their state.
	Warm map[run.WarmState]int
	// Errors are the last failures of the platform, the newest first.
	Errors []PoolErrorGroup
	// LastError is the newest failure of an attempt among the runs that hold a slot and
	// those at the head of the queue; nil without one.
	LastError *fault.Fault
}

// Health reads the state of a pool: of at most healthRuns runs. Fault: NotFound.
func (s *Pools) Health(ctx context.Context, who port.Identity, id string) (h PoolHealth, err error) {
	if h.PoolView, err = s.Pool(ctx, who, id); err != nil {
		return h, err
	}
	held, err := s.runsOf(ctx, who.Tenant, id, s.store.Holders)
	if err != nil {
		return h, err
	}
	queued, err := s.runsOf(ctx, who.Tenant, id, s.store.Queue)
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
	h.Warm = map[run.WarmState]int{}
	for _, w := range warm {
		h.Warm[w.Phase]++
	}
	h.DrainPhase, h.Left = h.Pool.DrainPhase(held, len(warm), s.now()), max(h.Held, len(held))
	if h.Replicas, err = s.replicaHealths(ctx, h.Pool); err != nil {
		return h, err
	}
	h.Remaining = held[:min(len(held), healthRemaining)]
	if err := s.startFigures(ctx, &h, held); err != nil {
		return h, err
	}
	_, known, err := s.refusals.load(ctx, h.Ref())
	if err != nil {
		return h, err
	}
	h.Errors = known.Groups
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

// startFigures reads how long starts of the pool take, and how many the platform permits.
func (s *Pools) startFigures(ctx context.Context, h *PoolHealth, held []run.Run) error {
	h.At = s.now()
	measured, err := s.estimates.measured(ctx, h.Tenant, h.ID)
	if err != nil {
		return err
	}
	h.Starts, h.StartP50, h.StartP99 = measured.Starts()
	gate, err := s.store.StartGate(ctx, h.ID)
	if err != nil {
		return fmt.Errorf("cannot read the pace of the starts of pool %s: %w", h.ID, err)
	}
	h.StartRate = gate.Rate()
	if gate.Paced(s.now()) {
		h.NextStart = gate.Permit()
	}
	if h.RecentRate, err = s.recentRate(ctx, h.Pool, held); err != nil {
		return err
	}
	kind := run.KindJob
	if h.Engine != nil {
		kind = run.KindInference
	}
	next := run.New(run.Run{
		Tenant: h.Tenant, Work: run.Work{Kind: kind}, Policy: s.policy, Slot: run.Slot{Pool: h.ID, QueueLimit: h.QueueLimit}, Priority: run.PriorityNormal,
	}, h.At).Run
	facts, err := s.facts(ctx, next)
	if err != nil {
		return fmt.Errorf("cannot estimate the wait in pool %s: %w", h.ID, err)
	}
	h.Expected = explain.Plan(next, facts).Expected
	return nil
}

// recentSpan is the time of which RecentRate counts the starts.
const recentSpan = time.Minute

// recentRate returns how many starts a second there were in the last minute. If the newest
// runs are all of that minute, it is the rate since the oldest of them.
func (s *Pools) recentRate(ctx context.Context, p run.Pool, held []run.Run) (perSecond float64, err error) {
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

// healthRemaining is how many runs with a slot PoolHealth names.
const healthRemaining = 20

// healthRuns is how many runs with a slot, and how many queued ones, Health reads.
const healthRuns = 100

// runsOf reads the runs of a pool that a list names.
func (s *Pools) runsOf(
	ctx context.Context, tenant, pool string, list func(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error),
) (runs []run.Run, err error) {
	refs, err := list(ctx, tenant, pool, healthRuns)
	if err != nil {
		return nil, fmt.Errorf("cannot read the runs of pool %s: %w", pool, err)
	}
	for _, ref := range refs {
		r, err := s.store.Load(ctx, ref)
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
