package pools

import (
	"cmp"
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// reloadInterval is the interval at which a reload checks whether the tasks of its pool have
// ended. maxReloadWait limits the wait, because API Gateway ends a request after 29 s.
const (
	reloadInterval = 250 * time.Millisecond
	maxReloadWait  = 25 * time.Second
)

// Reload makes an engine pool serve another model of the catalog and asks its replicas for
// their capabilities again. An empty model keeps the present one. Reload stops the admission
// and waits at most seconds for the tasks of the pool; it never ends one. If tasks are left, it
// restores the pool and returns PoolInUse. Otherwise the pool admits tasks afterwards, even if
// it was draining before. A process that stops in between leaves the pool draining.
//
// Replicas that Sortie runs are replaced afterwards, one at a time, each after its tasks. If
// their model stays the same, the pool admits tasks meanwhile, and Reload does not wait.
//
// Faults: NotFound, NoEngine, InvalidRequest and Unprocessable with the field, PoolInUse,
// PreconditionFailed.
func (s *Pools) Reload(ctx context.Context, who port.Identity, id, model string, seconds int, required change.Precondition) (View, error) {
	wait := time.Duration(seconds) * time.Second
	if wait < 0 || wait > maxReloadWait {
		return View{}, fault.Invalid("deadlineSeconds", "deadlineSeconds: %d is out of range, want 0 to %d", seconds, maxReloadWait/time.Second)
	}
	p, err := s.stored(ctx, who, id)
	if err == nil {
		err = required.Check("pool", Tag(p))
	}
	if err != nil {
		return View{}, err
	}
	if p.Engine == nil {
		return View{}, fault.New(fault.NoEngine, "the pool %s has no engine to reload", id)
	}
	if model != "" {
		if err := s.checkModel(ctx, who, p, model); err != nil {
			return View{}, err
		}
	}
	if p.Engine.Machines != nil && cmp.Or(model, p.Engine.Model) == p.Engine.Model {
		return s.reloaded(ctx, who, id, model) // replicas are replaced one at a time; the others serve
	}
	if wait == 0 {
		if err := s.unused(ctx, p); err != nil {
			return View{}, err // without a drain, which would stop the admission
		}
	}
	drained := p.Draining
	if p, err = s.existing(ctx, who, id, change.Precondition{}, func(stored platform.Pool) platform.Pool {
		if stored.Draining {
			return stored
		}
		return stored.Drain(time.Time{}, who.Subject, s.now())
	}); err != nil {
		return View{}, err
	}
	if err := s.awaitUnused(ctx, p, wait); err != nil {
		if !drained {
			if _, undone := s.Resume(context.WithoutCancel(ctx), who, id, change.Precondition{}); undone != nil {
				s.log.WarnContext(ctx, "cannot resume a pool whose reload has failed; it stays drained", "pool", id, "error", undone.Error())
			}
		}
		return View{}, err
	}
	return s.reloaded(ctx, who, id, model)
}

// reloaded commits that the pool serves the model, or its present one if model is empty. It
// then updates the replicas and starts queued runs.
func (s *Pools) reloaded(ctx context.Context, who port.Identity, id, model string) (View, error) {
	p, err := s.existing(ctx, who, id, change.Precondition{}, func(stored platform.Pool) platform.Pool {
		if stored.Engine == nil {
			return stored
		}
		return stored.Reloaded(cmp.Or(model, stored.Engine.Model), who.Subject, s.now())
	})
	if err != nil {
		return View{}, err
	}
	s.runs.KeepReplicas(ctx, p.Ref())
	s.fillPool(ctx, p)
	return s.view(ctx, p)
}

// checkModel returns the faults of a model for the engine of a pool, with the field model.
func (s *common) checkModel(ctx context.Context, who port.Identity, p platform.Pool, model string) error {
	engine := *p.Engine
	engine.Model = model
	wrong, err := s.checkEngine(ctx, who, p.ID, Definition{Engine: &engine})
	for _, f := range wrong {
		f.Field = "model"
	}
	if err == nil && len(wrong) > 0 {
		err = job.ProblemsOf(wrong)
	}
	return err
}

// awaitUnused waits at most wait until all runs of the pool have ended. Fault: PoolInUse.
func (s *Pools) awaitUnused(ctx context.Context, p platform.Pool, wait time.Duration) error {
	for until := s.now().Add(wait); ; {
		err := s.unused(ctx, p)
		left := until.Sub(s.now())
		if f := fault.Of(err); err == nil || f.Code != fault.PoolInUse || left <= 0 {
			return err
		}
		if err := clock.Sleep(ctx, s.clock, min(left, reloadInterval)); err != nil {
			return fault.Wrap(err, fault.Unavailable, "the reload was interrupted; the pool serves the model as before")
		}
	}
}
