package orchestrator

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// readyFor is how long a replica that was ready gets requests without being asked. A request
// that then fails is tried again, after the replica was asked.
const readyFor = 5 * time.Second

// tryTake takes a slot of the replica that take would try first, if that was ready a moment
// ago; otherwise it returns nil. It waits for nothing.
func (s *replicas) tryTake(r run.Run, pool run.Pool) *lease {
	found := s.candidates(r, pool)
	if len(found) == 0 || !s.knowsReady(found[0], true) {
		return nil
	}
	return s.hold(r, pool, found[0], true)
}

// health returns whether a replica is ready. It asks it, unless it was ready a moment ago.
func (s *replicas) health(ctx context.Context, r *replica) (port.EngineHealth, error) {
	if s.knowsReady(r, false) {
		return port.EngineHealth{Live: true, Ready: true}, nil
	}
	health, err := r.engine.Health(ctx)
	if err == nil && health.Ready {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.readyAt = s.clock.Now()
	}
	return health, err
}

// knowsReady reports whether a replica was ready a moment ago, and, if described, has also said
// what it can do.
func (s *replicas) knowsReady(r *replica, described bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if described && (r.askedAt.IsZero() || now.Sub(r.askedAt) >= askAfter) {
		return false
	}
	age := now.Sub(r.readyAt)
	return !r.readyAt.IsZero() && age >= 0 && age < readyFor
}
