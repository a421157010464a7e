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

// contextOf returns the longest prompt with its answer of a model in a pool, in tokens: the largest
// context of its replicas, and not more than the catalog says. What is unknown limits nothing; if
// neither is known, it is limit.ContextTokens. It waits for no engine.
func (s *Lifecycle) contextOf(ctx context.Context, pool run.Pool, model catalog.Model) int {
	known := s.dispatcher.contextOf(ctx, pool)
	if known > 0 && model.ContextTokens > 0 {
		return min(known, model.ContextTokens)
	}
	return cmp.Or(known, model.ContextTokens, limit.ContextTokens)
}

// longEnough returns those of the pools that serve a model whose context has a number of tokens,
// else the one with the largest context.
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

// describeTime is how long engines have to say what they can do, where something waits for it.
const describeTime = 2 * time.Second

// contextOf returns the largest context of the replicas of a pool, in tokens, as they said it last;
// 0 if that is not known here. Those that said it long ago are asked meanwhile.
func (s *Dispatcher) contextOf(ctx context.Context, pool run.Pool) int {
	if s == nil {
		return 0
	}
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

// Describe asks the replicas of a pool what they can do, unless that is known, and returns when
// they have answered or ctx has ended.
func (s *Dispatcher) Describe(ctx context.Context, pool run.Pool) {
	if s == nil {
		return
	}
	pool, err := s.sets.served(ctx, pool)
	if err != nil {
		return // it stays unknown; contextOf reports it
	}
	var asked sync.WaitGroup
	for _, r := range s.replicas.outdated(pool) {
		asked.Go(func() { s.replicas.describe(ctx, r) })
	}
	asked.Wait()
}

// outdated returns the replicas of a pool that have not said what they can do within askAfter.
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

// contextOf returns the largest context that a replica of a pool has said; 0 if none has.
func (s *replicas) contextOf(pool run.Pool) (longest int) {
	found := s.ofPool(pool)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range found {
		longest = max(longest, r.can.ContextTokens)
	}
	return longest
}

// ofPool returns the replicas of a pool for which this process has an engine.
func (s *replicas) ofPool(pool run.Pool) (found []*replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range pool.Engine.Replicas {
		if r, err := s.know(pool, each); err == nil {
			found = append(found, r)
		}
	}
	return found
}

// describing notes that a replica is asked in the background, or not any more. It returns whether
// that is a change.
func (s *replicas) describing(r *replica, is bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = r.asked != is
	r.asked = is
	return changed
}

// describe asks a replica what it can do. One that does not answer is asked again after restFor.
func (s *replicas) describe(ctx context.Context, r *replica) {
	now := s.clock.Now()
	found, err := r.engine.Capabilities(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.askedAt = now; err != nil {
		r.askedAt = now.Add(restFor - askAfter)
		return
	}
	r.can = found
}
