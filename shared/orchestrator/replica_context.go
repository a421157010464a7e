package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/catalog"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/run"
)

// contextOf returns the context length of a model in a pool, in tokens. It is the largest
// reported context of the replicas, limited by that of the catalog. An unknown value limits
// nothing; if both are unknown, it is limit.ContextTokens. It does not wait for an engine.
func (s *Lifecycle) contextOf(ctx context.Context, pool run.Pool, model catalog.Model) int {
	known := s.tasks.contextOf(ctx, pool)
	if known > 0 && model.ContextTokens > 0 {
		return min(known, model.ContextTokens)
	}
	return cmp.Or(known, model.ContextTokens, limit.ContextTokens)
}

// longEnough returns the pools whose context for the model has at least a number of tokens. If
// no pool has, it returns the pool with the largest context.
func (s *Lifecycle) longEnough(ctx context.Context, of []run.Pool, model catalog.Model, tokens int) (fit []run.Pool) {
	largest := 0
	var best run.Pool
	for _, p := range of {
		longest := s.contextOf(ctx, p, model)
		if longest >= tokens {
			fit = append(fit, p)
		}
		if longest > largest {
			largest, best = longest, p
		}
	}
	if len(fit) == 0 {
		fit = []run.Pool{best}
	}
	return fit
}

// describeTime limits how long a caller waits for engines to report their capabilities.
const describeTime = 2 * time.Second

// contextOf returns the largest context that the replicas of a pool last reported, in tokens; 0
// if this process knows no report. It asks replicas with an old report again, in the
// background.
func (s *Dispatcher) contextOf(ctx context.Context, pool run.Pool) int {
	pool, err := s.sets.served(ctx, pool)
	if err != nil {
		s.log.WarnContext(ctx, "cannot read the replicas of a pool, so that their context is unknown", "pool", pool.ID, "error", err.Error())
		return 0
	}
	longest := s.replicas.contextOf(pool)
	for _, r := range s.replicas.outdated(pool) {
		if !s.replicas.describing(r, true) {
			continue
		}
		started := s.start(func(ctx context.Context) {
			defer s.replicas.describing(r, false)
			s.replicas.describe(ctx, r)
		})
		if !started {
			s.replicas.describing(r, false)
		}
	}
	return longest
}

// Describe asks the replicas of a pool for their capabilities, unless their last report is
// recent. It returns when they have answered or ctx has ended.
func (s *Dispatcher) Describe(ctx context.Context, pool run.Pool) { s.describe(ctx, pool) }

func (s *Dispatcher) describe(ctx context.Context, pool run.Pool) {
	pool, err := s.sets.served(ctx, pool)
	if err != nil {
		return // the context stays unknown; contextOf reports it
	}
	var asked sync.WaitGroup
	for _, r := range s.replicas.outdated(pool) {
		asked.Go(func() { s.replicas.describe(ctx, r) })
	}
	asked.Wait()
}

// outdated returns the replicas of a pool that have not reported their capabilities within
// askAfter.
func (s *replicas) outdated(pool run.Pool) []*replica {
	now := s.clock.Now()
	found := s.ofPool(pool)
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(found, func(r *replica) bool {
		age := now.Sub(r.askedAt)
		return !r.askedAt.IsZero() && age >= 0 && age < askAfter
	})
}

// contextOf returns the largest reported context of the replicas of a pool; 0 without a report.
func (s *replicas) contextOf(pool run.Pool) (longest int) {
	found := s.ofPool(pool)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range found {
		longest = max(longest, r.reportedCapabilities.ContextTokens)
	}
	return longest
}

// ofPool returns the replicas of a pool for which this process has an engine.
func (s *replicas) ofPool(pool run.Pool) (found []*replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range pool.Engine.Replicas {
		if r, err := s.stateOf(pool, each); err == nil {
			found = append(found, r)
		}
	}
	return found
}

// describing records whether a background request to a replica is under way. It returns whether
// the record has changed.
func (s *replicas) describing(r *replica, is bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = r.describing != is
	r.describing = is
	return changed
}

// describe asks a replica for its capabilities and stores them. After an error they become
// outdated in restFor.
func (s *replicas) describe(ctx context.Context, r *replica) {
	now := s.clock.Now()
	found, err := r.engine.Capabilities(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.askedAt = now; err != nil {
		r.askedAt = now.Add(restFor - askAfter)
		return
	}
	r.reportedCapabilities = found
}
