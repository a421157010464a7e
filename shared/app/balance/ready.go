package balance

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// readyFor is how long a ready replica gets requests without a health check. A request that
// then fails is retried after a health check.
const readyFor = 5 * time.Second

// TryTake takes a slot of the replica that Take would try first, if it was ready within
// readyFor. Otherwise it returns nil. It does not wait.
func (s *Replicas) TryTake(r run.Run, pool platform.Pool) *Lease {
	found := s.candidates(r, pool)
	if len(found) == 0 || !s.knowsReady(found[0], true) {
		return nil
	}
	return s.takeSlot(r, pool, found[0], true)
}

// health returns the health of a replica. It asks the engine unless the replica was ready
// within readyFor.
func (s *Replicas) health(ctx context.Context, r *replica) (port.EngineHealth, error) {
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

// knowsReady reports whether a replica was ready within readyFor. With described, its
// capabilities must also have been reported within askAfter.
func (s *Replicas) knowsReady(r *replica, described bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if described && (r.askedAt.IsZero() || now.Sub(r.askedAt) >= askAfter) {
		return false
	}
	age := now.Sub(r.readyAt)
	return !r.readyAt.IsZero() && age >= 0 && age < readyFor
}
