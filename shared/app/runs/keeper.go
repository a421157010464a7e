package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// ReplicaKeeper starts and ends the runs of the replicas of pools; see pools.Keeper.
type ReplicaKeeper interface {
	// Reconcile reconciles the replicas of a pool with its settings. It is idempotent.
	Reconcile(ctx context.Context, pool platform.PoolRef) error
}

// ReplicaRuns says who starts and ends the runs of replicas: KeepReplicas or LeaveToSweep.
type ReplicaRuns interface {
	// keeper returns nil if a sweep of another process updates the replica sets.
	keeper(life *Lifecycle, config Config) ReplicaKeeper
}

// KeepReplicas makes a process update the replica set of a pool after a commit that starts or
// ends the run of a replica. Its sweeps update all sets. with returns the keeper for the runs of
// the process.
func KeepReplicas(hex Hex, with func(Creations) ReplicaKeeper) ReplicaRuns {
	return keepReplicas{hex, with}
}

type keepReplicas struct {
	hex  Hex
	with func(Creations) ReplicaKeeper
}

func (k keepReplicas) keeper(life *Lifecycle, config Config) ReplicaKeeper {
	return k.with(NewCreations(NewRequests(life, k.hex, LeaveToSweep{}, config)))
}

// reconcileKey is the context key of a running call of reconcileReplicas. Commits inside it do not call it again.
type reconcileKey struct{}

// reconcileTime is the timeout of a call that follows a commit or a request.
const reconcileTime = 10 * time.Second

// keepFor updates the replicas of the pool that a run serves, if a commit left the run Running
// or ended. The sweep repeats a failed update.
func (s *Lifecycle) keepFor(ctx context.Context, r *run.Run) {
	if r.Serves != nil && (r.State == run.Running || r.State.Terminal()) {
		s.reconcileNow(ctx, platform.PoolRef{Tenant: r.Tenant, ID: r.Serves.Pool})
	}
}

// reconcileNow updates the replicas of a pool and logs an error, after which the sweep tries again.
// It does nothing in a process that keeps no replicas, or inside such a call.
func (s *Lifecycle) reconcileNow(ctx context.Context, pool platform.PoolRef) {
	if s.keeper == nil || ctx.Value(reconcileKey{}) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTime)
	defer cancel()
	if err := s.reconcileReplicas(ctx, pool); err != nil {
		s.log.WarnContext(ctx, "cannot keep the replicas of a pool; a sweep does", "pool", pool.ID, "error", err.Error())
	}
}

func (s *Lifecycle) reconcileReplicas(ctx context.Context, pool platform.PoolRef) error {
	return s.keeper.Reconcile(context.WithValue(ctx, reconcileKey{}, true), pool)
}

// sweepReplicas calls reconcileReplicas for each pool with a replica set.
func (s *Sweeper) sweepReplicas(ctx context.Context) error {
	if s.keeper == nil {
		return nil
	}
	return s.parts.EachRef(ctx, "replicas", func(after string) ([]run.Ref, string, error) {
		due, next, err := s.store.ResourcesDue(ctx, capacity.ReplicaKind, s.now(), after, sweepPage)
		if err != nil {
			err = fmt.Errorf("cannot read the replicas of pools: %w", err)
		}
		refs := make([]run.Ref, len(due))
		for i, ref := range due {
			refs[i] = run.Ref{Tenant: ref.Tenant, ID: ref.ID}
		}
		return refs, next, err
	}, func(limited context.Context, ref run.Ref) error {
		return s.reconcileReplicas(limited, platform.PoolRef(ref))
	})
}
