package orchestrator

import (
	"cmp"
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// reloadLook is how often a reload looks whether the tasks of its pool have ended, and
// maxReloadWait how long: API Gateway ends a request after 29 s.
const (
	reloadLook    = 250 * time.Millisecond
	maxReloadWait = 25 * time.Second
)

// Reload makes a pool of an engine serve another model of the catalog, and asks its replicas
// again what they can do; without a model it does the latter alone. It waits for the tasks
// of the pool, whose admission stops meanwhile, and never ends one: if some are left at the
// end of the wait, the pool is as before. Afterwards it admits tasks, also if it was drained.
// A process that ends in between leaves the pool drained.
//
// Replicas that Sortie runs are replaced afterwards, one after the other, each after its
// tasks. Without another model the pool admits tasks meanwhile, and Reload waits for none.
// Faults: NotFound, NoEngine,
// InvalidRequest and Unprocessable with the field, PoolInUse, PreconditionFailed.
func (s *Pools) Reload(ctx context.Context, who port.Identity, id, model string, seconds int, required Precondition) (PoolView, error) {
	wait := time.Duration(seconds) * time.Second
	if wait < 0 || wait > maxReloadWait {
		return PoolView{}, fault.Invalid("deadlineSeconds", "deadlineSeconds: %d is out of range, want 0 to %d", seconds, maxReloadWait/time.Second)
	}
	p, err := s.stored(ctx, who, id)
	if err == nil {
		err = required.check("pool", PoolTag(p))
	}
	if err != nil {
		return PoolView{}, err
	}
	if p.Engine == nil {
		return PoolView{}, fault.New(fault.NoEngine, "the pool %s has no engine to reload", id)
	}
	if model != "" {
		if err := s.checkModel(ctx, who, p, model); err != nil {
			return PoolView{}, err
		}
	}
	if p.Engine.Machines != nil && cmp.Or(model, p.Engine.Model) == p.Engine.Model {
		return s.reloaded(ctx, who, id, model) // the replicas take turns; the others serve
	}
	if wait == 0 {
		if err := s.unused(ctx, p); err != nil {
			return PoolView{}, err // without a drain, which would refuse tasks meanwhile
		}
	}
	drained := p.Draining
	if p, err = s.existing(ctx, who, id, Precondition{}, func(stored run.Pool) run.Pool {
		if stored.Draining {
			return stored
		}
		return stored.Drain(time.Time{}, who.Subject, s.now())
	}); err != nil {
		return PoolView{}, err
	}
	if err := s.awaitUnused(ctx, p, wait); err != nil {
		if !drained {
			if _, undone := s.Resume(context.WithoutCancel(ctx), who, id, Precondition{}); undone != nil {
				s.log.WarnContext(ctx, "cannot resume a pool whose reload has failed; it stays drained", "pool", id, "error", undone.Error())
			}
		}
		return PoolView{}, err
	}
	return s.reloaded(ctx, who, id, model)
}

// reloaded makes a pool serve the model, or the present one again.
func (s *Pools) reloaded(ctx context.Context, who port.Identity, id, model string) (PoolView, error) {
	p, err := s.existing(ctx, who, id, Precondition{}, func(stored run.Pool) run.Pool {
		if stored.Engine == nil {
			return stored
		}
		return stored.Reloaded(cmp.Or(model, stored.Engine.Model), who.Subject, s.now())
	})
	if err != nil {
		return PoolView{}, err
	}
	s.keepNow(ctx, p.Ref())
	s.fillPool(ctx, p)
	return s.view(ctx, p)
}

// checkModel returns the faults of a model that the engine of a pool cannot serve.
func (s *Pools) checkModel(ctx context.Context, who port.Identity, p run.Pool, model string) error {
	engine := *p.Engine
	engine.Model = model
	wrong, err := s.checkEngine(ctx, who, p.ID, PoolDefinition{Engine: &engine})
	for _, f := range wrong {
		f.Field = "model"
	}
	if err == nil && len(wrong) > 0 {
		err = problemsOf(wrong)
	}
	return err
}

// awaitUnused waits until no run needs the pool. Fault: PoolInUse.
func (s *Pools) awaitUnused(ctx context.Context, p run.Pool, wait time.Duration) error {
	for until := s.now().Add(wait); ; {
		err := s.unused(ctx, p)
		left := until.Sub(s.now())
		if f := fault.Of(err); err == nil || f.Code != fault.PoolInUse || left <= 0 {
			return err
		}
		if err := clock.Sleep(ctx, s.clock, min(left, reloadLook)); err != nil {
			return fault.Wrap(err, fault.Unavailable, "the reload was interrupted; the pool serves the model as before")
		}
	}
}
