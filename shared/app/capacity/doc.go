// Package capacity reads what the use cases know about pools: their records and sizes, their
// replicas, the length of their queues, the expected starts, and the failures of their platforms.
//
// Everything is in the store. Each type caches what it has read for a short time, so that its
// cost does not grow with the number of calls. The types are safe for concurrent use.
package capacity

import (
	"log/slog"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Caches are the caches of a process. Its use cases share them, so that each of them sees what
// another has changed.
type Caches struct {
	Pools     *Pools
	Replicas  *ReplicaSets
	Queue     *QueueLimit
	Estimates *Estimates
	Failures  *Failures
}

// New returns empty caches of a store. configured is the default pool while it has no record.
func New(store port.Store, c clock.Clock, log *slog.Logger, configured platform.Pool) *Caches {
	return &Caches{
		Pools: NewPools(store, c, configured), Replicas: NewReplicaSets(store, c), Queue: NewQueueLimit(store, c),
		Estimates: NewEstimates(store, c), Failures: NewFailures(store, log),
	}
}
