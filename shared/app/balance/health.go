package balance

import (
	"context"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// ReplicaHealth is the state of a replica.
type ReplicaHealth struct {
	ID string
	// Held is the number of tasks that this process has at the replica. Version is the version
	// of the engine; empty if it is unknown.
	Held    int
	Version string
	port.EngineHealth
	// Machine is the record of a replica that Sortie runs; nil for a server at an address.
	Machine *fleet.Replica
}

// HealthOf returns the health that an engine reports. An engine that does not answer is not
// ready.
func HealthOf(ctx context.Context, e port.Engine) port.EngineHealth {
	health, err := e.Health(ctx)
	if err != nil {
		return port.EngineHealth{Reason: err.Error()}
	}
	return health
}

// Healths returns the health of the replicas of a pool. A replica that rests after failures is
// not ready.
func (s *Replicas) Healths(ctx context.Context, p platform.Pool) []ReplicaHealth {
	known := s.Known(p)
	found := make([]ReplicaHealth, len(known))
	var asked sync.WaitGroup
	for i, r := range known {
		asked.Go(func() {
			health := HealthOf(ctx, r.Engine)
			if health.Ready && r.Resting {
				health.Ready, health.Reason = false, "it gets no tasks for a while after failures"
			}
			found[i] = ReplicaHealth{ID: r.ID, Held: r.Held, Version: r.Can.Version, EngineHealth: health}
		})
	}
	asked.Wait()
	return found
}
