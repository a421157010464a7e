package inferences

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/routing"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// This file has the fallbacks of tasks. The acceptance fixes the pools that can serve a task. A full
// queue or a prompt that is too long lets it use another of them at once, and a failed attempt lets
// the next attempt use one; see routing.Routes.

// routedRun returns the run of a request in a pool or, if its prompt is too long for the model of the
// pool, in a fallback.
func (s *Inference) routedRun(ctx context.Context, in NewTask, model catalog.Model, pool platform.Pool) (run.Run, error) {
	within, err := s.deadlineOf(in, pool.Engine)
	if err != nil {
		return run.Run{}, err
	}
	in.Within = within
	r, refusal := s.newRun(in, model, pool, s.contextOf(ctx, pool, model))
	why := fault.Of(refusal)
	if len(pool.Fallbacks) == 0 || refusal != nil && routing.ReasonOf(why) != platform.FallbackContext {
		return r, refusal
	}
	home := routeOf(pool, r)
	if refusal != nil {
		home.Unfit, home.TooLong = why.Message, true
	}
	routes, runs, err := s.routesFrom(ctx, in, pool)
	if err != nil {
		return r, err
	}
	routes = append(routing.Routes{home}, routes...)
	if refusal == nil {
		return reserved(r, routes), nil
	}
	closed, err := s.closedPools(ctx, in.Identity.Tenant, routes)
	if err != nil {
		return r, err
	}
	to, ok := routes.Next(pool.ID, platform.FallbackContext, func(id string) bool { return id == pool.ID }, closed)
	if !ok {
		return r, refusal
	}
	r = runs[to.Pool]
	r.Slot.Pool = pool.ID
	return reserved(r.Refused(to, platform.FallbackContext, why.Message, s.now()), routes), nil
}

// reserved returns a new run with its routes, and with a reservation for the dearest of them.
func reserved(r run.Run, routes routing.Routes) run.Run {
	r.Routes = routes
	r.Reservation = r.Reservation.Renewed(catalog.Dearest(r.Reservation.Prices, r))
	return r
}

// routeOf returns the route to the pool of a new run.
func routeOf(pool platform.Pool, r run.Run) routing.Route {
	to := routing.Route{Pool: pool.ID, Model: pool.Engine.Model, Engine: string(pool.Engine.Kind)}
	if work := r.Work.Inference; work != nil {
		to.EngineModel, to.MaxTokens, to.Prices = work.EngineModel, work.MaxTokens, r.Reservation.Prices
	}
	return to
}

// routesFrom returns the routes to the fallbacks of a pool, to theirs, and so on, each pool once,
// with the run of the request in each of them that can serve it.
func (s *Inference) routesFrom(ctx context.Context, in NewTask, pool platform.Pool) (routes routing.Routes, runs map[string]run.Run, err error) {
	seen, runs := map[string]bool{pool.ID: true}, map[string]run.Run{}
	for open := []platform.Pool{pool}; len(open) > 0; open = open[1:] {
		for _, f := range open[0].Fallbacks {
			if seen[f.Pool] || len(routes) == platform.MaxFallbacks {
				continue
			}
			seen[f.Pool] = true
			to, err := s.capacity.Pools.Pool(ctx, in.Identity.Tenant, f.Pool)
			switch {
			case errors.Is(err, port.ErrNotFound), err == nil && (to.Engine == nil || to.Origin != nil):
				continue
			case err != nil:
				return nil, nil, err
			}
			r, refusal := s.runIn(ctx, in, to)
			route := routeOf(to, r)
			if route.From, route.On = open[0].ID, f.On; refusal != nil {
				if !cannotServe(refusal) {
					return nil, nil, refusal
				}
				why := fault.Of(refusal)
				route.Unfit, route.TooLong = why.Message, routing.ReasonOf(why) == platform.FallbackContext
			}
			routes, runs[to.ID] = append(routes, route), r
			open = append(open, to)
		}
	}
	return routes, runs, nil
}

// runIn returns the run of a request in a fallback. A fault says why it cannot serve the request.
func (s *Inference) runIn(ctx context.Context, in NewTask, pool platform.Pool) (run.Run, error) {
	if in.Engine != "" && in.Engine != string(pool.Engine.Kind) {
		return run.Run{}, fault.New(fault.PoolUnavailable, "the request wants the engine %s", in.Engine)
	}
	asked := in
	asked.Model = pool.Engine.Model
	if err := in.Identity.NeedModel(asked.Model); err != nil {
		return run.Run{}, err
	}
	model, err := s.model(ctx, asked)
	if err != nil {
		return run.Run{}, err
	}
	return s.newRun(in, model, pool, s.contextOf(ctx, pool, model))
}

// closedPools returns the pools of routes that admit no tasks: they drain, do not exist any more, or
// serve another model.
func (s *Inference) closedPools(ctx context.Context, tenant string, routes routing.Routes) (closed []string, err error) {
	for _, route := range routes {
		pool, err := s.capacity.Pools.ForRun(ctx, tenant, route.Pool)
		if err != nil {
			return nil, err
		}
		if pool.Draining || pool.Engine == nil || pool.Engine.Model != route.Model {
			closed = append(closed, route.Pool)
		}
	}
	return closed, nil
}

// createIn stores a new run in the first of its pools whose queue is not full.
func (s *Inference) createIn(ctx context.Context, r run.Run, key, digest string) (created run.Run, existing bool, err error) {
	var first error
	for {
		created, existing, err = s.runs.Create(ctx, r, key, digest)
		if err == nil || !isFullQueue(err) || len(r.Routes) == 0 {
			return created, existing, err
		}
		if first == nil {
			first = err
		}
		closed, lost := s.closedPools(ctx, r.Tenant, r.Routes)
		if lost != nil {
			return created, existing, fmt.Errorf("cannot read the fallbacks of pool %s: %w", r.Slot.Pool, lost)
		}
		to, ok := r.NextRoute(platform.FallbackQueue, closed)
		if !ok {
			return created, existing, first
		}
		r = r.Refused(to, platform.FallbackQueue, fault.Of(err).Message, s.now())
	}
}

// isFullQueue reports whether an error is the refusal of a pool with a full queue, and not that of a
// budget.
func isFullQueue(err error) bool {
	_, short := errors.AsType[*port.NoBudget](err)
	return fault.Is(err, fault.AdmissionReject) && !short
}

// settlement returns the fact that settles an attempt, with what it needs to know about the pools of
// the task.
func (s *endings) settlement(ctx context.Context, r run.Run) (f run.GenerationSettled, err error) {
	f.Attempt = r.Attempt.Number
	if len(r.Routes) == 0 || r.Succeeded() {
		return f, nil
	}
	if f.Closed, err = s.closedPools(ctx, r.Tenant, r.Routes); err != nil {
		return f, err
	}
	if r.Attempt.StartedAt.IsZero() {
		return f, nil // no replica of the pool was ready
	}
	pool, err := s.servedPool(ctx, r)
	if err == nil && pool.Engine != nil && !slices.Contains(f.Closed, pool.ID) {
		f.Elsewhere = slices.ContainsFunc(s.replicas.Known(pool), func(k balance.Known) bool {
			return !k.Resting && !slices.Contains(r.FailedReplicas, k.ID)
		})
	}
	return f, err
}

// hasFallback reports whether a task can use another pool after an error of its pool. It then does
// not wait for a replica that is not ready or busy.
func (s *Inference) hasFallback(ctx context.Context, r run.Run) (bool, error) {
	if len(r.Routes) == 0 {
		return false, nil
	}
	closed, err := s.closedPools(ctx, r.Tenant, r.Routes)
	if err != nil {
		return false, err
	}
	_, ok := r.NextRoute(platform.FallbackError, closed)
	return ok, nil
}
