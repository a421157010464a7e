package runs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/app/crew"
	"github.com/sortie-dev/sortie/shared/app/reception"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// sweepPage is how many records one part of a sweep reads at a time.
const sweepPage = 100

// Sweeper reconciles the records with the runner, the executions, the object store and the
// clock. Sweeps may overlap.
//
// The memory of a sweep does not grow with the number of runs, except for a few bytes for each
// run with a machine. Each part has its own share of the time. A part that ends early remembers
// in this process where the next sweep continues, so that records whose repair fails or hangs
// do not delay the others.
type Sweeper struct {
	*Machines
	parts     *crew.Parts
	outputs   *Outputs
	artifacts ExpiredArtifacts
	firing    *Firing
	reception *reception.Prober
	streams   ExpiredStreams
	drains    PoolDrains
	warm      WarmMachines
	// claimed is set once the store is known to be claimed.
	claimed atomic.Bool
}

// ExpiredArtifacts has the artifacts whose retention may have ended.
type ExpiredArtifacts interface {
	// Expired returns a page of at most limit of them, and the cursor of the next page.
	Expired(ctx context.Context, after string, limit int) (found []port.ResourceRef, next string, err error)
	// Collect removes an artifact that has expired and is no parent. It returns port.ErrConflict
	// if the artifact has changed meanwhile.
	Collect(ctx context.Context, tenant, id string) error
}

// WarmMachines keeps the warm machines of pools; see warm.Machines.
type WarmMachines interface {
	// Sweep creates and destroys warm machines until each pool matches its settings. listed has
	// those that the runner has listed, by pool and id.
	Sweep(ctx context.Context, listed map[platform.PoolRef]map[string]port.MachineStatus) error
}

// NewSweeper returns a Sweeper.
func NewSweeper(
	machines *Machines, outputs *Outputs, artifacts ExpiredArtifacts, firing *Firing, prober *reception.Prober, streams ExpiredStreams,
	drains PoolDrains, warm WarmMachines, config Config,
) *Sweeper {
	return &Sweeper{
		Machines: machines, outputs: outputs, artifacts: artifacts, firing: firing, reception: prober, streams: streams, drains: drains, warm: warm,
		parts: crew.NewParts(machines.clock, config.SweepWorkers, config.ExpiryPause),
	}
}

// Sweep runs every part of a sweep and returns the joined errors of all. A record counts as overdue
// early before its time: 0, or more after a restart, because the process that had to act may be
// gone. If ctx has a deadline, the time that is left is shared equally among the remaining parts.
// So a slow part does not stop the others.
func (s *Sweeper) Sweep(ctx context.Context, early time.Duration) error {
	warm := crew.NewWarmList()
	parts := []func(context.Context) error{
		s.RecordReception,
		func(ctx context.Context) error { return s.sweepJobs(ctx, early) },
		func(ctx context.Context) error { return s.sweepMachines(ctx, warm) }, s.sweepHeartbeats,
		func(ctx context.Context) error { return s.sweepDue(ctx, early) },
		s.sweepDrains, s.sweepPools, s.sweepReplicas, s.sweepOutputs, s.sweepArtifacts, s.sweepItems, s.sweepRecords, s.sweepAnswers,
		func(ctx context.Context) error { return s.warm.Sweep(ctx, warm.Pools()) },
	}
	var failed []error
	for i, part := range parts {
		failed = append(failed, s.parts.InShare(ctx, len(parts)-i, part))
	}
	return errors.Join(failed...)
}

// EffectFailed reports whether an effect of this process has failed since the last call, or was left
// to the sweep. A sweep that is run.EffectSlack early carries it out.
func (s *Sweeper) EffectFailed() bool { return s.effects.failed.Swap(false) }

// RecordReception tests with a canary whether workers can reach the API; the receiver
// records it. A sweep starts with it. If sweeps take long, it is also called beside
// them, once per SweepInterval.
func (s *Sweeper) RecordReception(ctx context.Context) error { return s.reception.Record(ctx) }

// sweepPools derives leases and queues from the records, and grants free slots.
func (s *Sweeper) sweepPools(ctx context.Context) error {
	pools, err := s.store.Pools(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the pools: %w", err)
	}
	at := s.parts.StartOf("pools")
	var failed crew.Failures
	for i := range pools {
		p := pools[(i+at.Turn)%len(pools)]
		changed, err := s.store.Reconcile(ctx, p.Tenant, p.Pool)
		if err != nil {
			failed.Add(fmt.Errorf("cannot reconcile pool %s: %w", p.Pool, err))
		}
		if changed > 0 {
			s.log.WarnContext(ctx, "leases differed from the records and were reconciled", "pool", p.Pool, "rows", changed)
		}
		if p.Queued > 0 {
			s.fill(ctx, p.Tenant, p.Pool)
		}
		if ctx.Err() != nil {
			s.parts.StartNext("pools", crew.Position{Turn: at.Turn + i + 1})
			break
		}
	}
	return failed.Join(ctx)
}

// sweepOutputs deletes expired objects. The next try of one that fails is delayed.
func (s *Sweeper) sweepOutputs(ctx context.Context) error {
	return s.parts.UnlessResting("outputs", func() (found int, err error) {
		err = s.parts.EachRef(ctx, "outputs", func(after string) ([]run.Ref, string, error) {
			refs, next, err := s.store.OutputsDue(ctx, s.now(), after, sweepPage)
			if err != nil {
				err = fmt.Errorf("cannot read the expired outputs: %w", err)
			}
			found += len(refs)
			return refs, next, err
		}, func(limited context.Context, ref run.Ref) error {
			if err := s.orDelay(ctx, ref, s.outputs.expire(limited, ref), run.DeletionFailed{}); err != nil {
				return fmt.Errorf("run %s: %w", ref.ID, err)
			}
			return nil
		})
		return found, err
	})
}

// sweepArtifacts removes the artifacts that have expired.
func (s *Sweeper) sweepArtifacts(ctx context.Context) error {
	return s.parts.UnlessResting("artifacts", func() (found int, err error) {
		err = s.parts.EachRef(ctx, "artifacts", func(after string) ([]run.Ref, string, error) {
			due, next, err := s.artifacts.Expired(ctx, after, sweepPage)
			if err != nil {
				return nil, "", fmt.Errorf("cannot read the expired artifacts: %w", err)
			}
			refs := make([]run.Ref, len(due))
			for i, ref := range due {
				refs[i] = run.Ref{Tenant: ref.Tenant, ID: ref.ID}
			}
			found += len(refs)
			return refs, next, nil
		}, func(limited context.Context, ref run.Ref) error {
			err := s.artifacts.Collect(limited, ref.Tenant, ref.ID)
			if err != nil && !errors.Is(err, port.ErrConflict) { // the next sweep retries
				return fmt.Errorf("artifact %s: %w", ref.ID, err)
			}
			return nil
		})
		return found, err
	})
}

// purgeBatch is the number of records that one call purges.
const purgeBatch = 500

func (s *Sweeper) sweepRecords(ctx context.Context) error {
	return s.parts.UnlessResting("records", func() (found int, err error) {
		for {
			purged, err := s.store.Purge(ctx, s.now(), purgeBatch)
			found += purged
			if err != nil {
				return found, fmt.Errorf("cannot purge expired records: %w", err)
			}
			if purged < purgeBatch {
				return found, nil
			}
		}
	})
}
