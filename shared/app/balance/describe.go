package balance

import (
	"context"
	"slices"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Describe asks the replicas of a pool for their capabilities, unless their last report is
// recent. It returns when they have answered or ctx has ended.
func (s *Replicas) Describe(ctx context.Context, pool platform.Pool) {
	var asked sync.WaitGroup
	for _, r := range s.outdated(pool) {
		asked.Go(func() { s.describe(ctx, r) })
	}
	asked.Wait()
}

// DescribeLater does the same as Describe in the background, with at most one request for each
// replica at a time. start calls do in a goroutine, or returns false.
func (s *Replicas) DescribeLater(pool platform.Pool, start func(do func(context.Context)) (started bool)) {
	for _, r := range s.outdated(pool) {
		if !s.setDescribing(r, true) {
			continue
		}
		started := start(func(ctx context.Context) {
			defer s.setDescribing(r, false)
			s.describe(ctx, r)
		})
		if !started {
			s.setDescribing(r, false)
		}
	}
}

// outdated returns the replicas of a pool that have not reported their capabilities within
// askAfter.
func (s *Replicas) outdated(pool platform.Pool) []*replica {
	now := s.clock.Now()
	found := s.ofPool(pool)
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(found, func(r *replica) bool {
		age := now.Sub(r.askedAt)
		return !r.askedAt.IsZero() && age >= 0 && age < askAfter
	})
}

// ContextOf returns the largest reported context of the replicas of a pool; 0 without a report.
func (s *Replicas) ContextOf(pool platform.Pool) (longest int) {
	found := s.ofPool(pool)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range found {
		longest = max(longest, r.reportedCapabilities.ContextTokens)
	}
	return longest
}

// ofPool returns the replicas of a pool for which this process has an engine.
func (s *Replicas) ofPool(pool platform.Pool) (found []*replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ofPoolLocked(pool)
}

// ofPoolLocked is ofPool for a caller that has locked s.mu.
func (s *Replicas) ofPoolLocked(pool platform.Pool) (found []*replica) {
	for _, each := range pool.Engine.Replicas {
		if r, err := s.stateOf(pool, each); err == nil {
			found = append(found, r)
		}
	}
	return found
}

// setDescribing records whether a background request to a replica is under way. It returns
// whether the record has changed.
func (s *Replicas) setDescribing(r *replica, is bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = r.describing != is
	r.describing = is
	return changed
}

// describe asks a replica for its capabilities and stores them. After an error they become
// outdated in restFor.
func (s *Replicas) describe(ctx context.Context, r *replica) {
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

// ReportedSlots asks the replicas of a pool for their slots, and returns the smallest number; 0 if
// none reports one. The pool may be one that is not stored yet.
func ReportedSlots(ctx context.Context, engines Engines, pool platform.Pool) int {
	found := make([]int, len(pool.Engine.Replicas))
	var asked sync.WaitGroup
	for i, r := range pool.Engine.Replicas {
		engine, err := engines(pool.Home().Tenant, *pool.Engine, r)
		if err != nil {
			continue
		}
		asked.Go(func() {
			if can, err := engine.Capabilities(ctx); err == nil {
				found[i] = can.Slots
			}
		})
	}
	asked.Wait()
	found = slices.DeleteFunc(found, func(n int) bool { return n <= 0 })
	if len(found) == 0 {
		return 0
	}
	return slices.Min(found)
}

// ReportedSlots is the function ReportedSlots with the engines of the replicas.
func (s *Replicas) ReportedSlots(ctx context.Context, pool platform.Pool) int {
	return ReportedSlots(ctx, s.engines, pool)
}
