package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Pool reads a pool of the caller's tenant. Fault: NotFound.
func (s *Pools) Pool(ctx context.Context, who port.Identity, id string) (PoolView, error) {
	p, err := s.stored(ctx, who, id)
	if err != nil {
		return PoolView{}, err
	}
	return s.view(ctx, p)
}

// Pools reads the caller's pools, ordered by id. They include the default pool even
// without a record.
func (s *Pools) Pools(ctx context.Context, who port.Identity) (views []PoolView, err error) {
	standard, err := s.stored(ctx, who, s.pools.configured.ID)
	if err != nil {
		return nil, err
	}
	pools := []run.Pool{standard}
	for page := (port.Page{Limit: poolPage}); ; {
		stored, next, err := s.store.PoolRecords(ctx, who.Tenant, page)
		if err != nil {
			return nil, fmt.Errorf("cannot list the pools: %w", err)
		}
		for _, p := range stored {
			if p.ID != standard.ID {
				pools = append(pools, p)
			}
		}
		if page.Cursor = next; next == "" {
			break
		}
	}
	slices.SortFunc(pools, func(a, b run.Pool) int { return cmp.Compare(a.ID, b.ID) })
	for _, p := range pools {
		v, err := s.view(ctx, p)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

// poolPage is how many pools one read of a list returns.
const poolPage = 1000

// view adds the use of a pool.
func (s *Pools) view(ctx context.Context, p run.Pool) (PoolView, error) {
	held, err := s.store.Holders(ctx, p.Tenant, p.ID, limit.PoolSlots)
	if err != nil {
		return PoolView{}, fmt.Errorf("cannot count the slots of pool %s: %w", p.ID, err)
	}
	queued, err := s.store.QueueLength(ctx, p.Tenant, p.ID, limit.PoolQueue)
	if err != nil {
		return PoolView{}, fmt.Errorf("cannot count the queue of pool %s: %w", p.ID, err)
	}
	return PoolView{p, len(held), queued}, nil
}

// PoolHealth is the state of a pool.
type PoolHealth struct {
	PoolView
	// Machines is the number of machines of the runs that hold a slot: Starting of them
	// were not observed running yet.
	Machines, Starting int
	// Remaining are the first runs that hold a slot, at most healthRemaining.
	Remaining []run.Run
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
	// LongestWait is how long the first run of the queue has waited.
	LongestWait time.Duration
	// Replicas are those of a pool of an engine, in a process that has a dispatcher.
	Replicas []ReplicaHealth
	// Warm counts the warm machines by their state.
	Warm map[run.WarmState]int
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
	for _, r := range held {
		if r.Attempt.Machine.Known() {
			h.Machines++
			if r.State == run.ContainerCreating {
				h.Starting++
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
	if h.Engine != nil && s.dispatcher != nil {
		h.Replicas = s.dispatcher.healths(ctx, h.Pool)
	}
	h.Remaining = held[:min(len(held), healthRemaining)]
	if err := s.startFigures(ctx, &h); err != nil {
		return h, err
	}
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
func (s *Pools) startFigures(ctx context.Context, h *PoolHealth) error {
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
	return nil
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
