package inferences

import (
	"context"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// servingPools are the pools of a tenant that serve a model, and why others do not.
type servingPools struct {
	// own are pools with replicas of the tenant, hosted those of other tenants that offer them.
	own, hosted             []platform.Pool
	known, mocked, draining bool
	// withdrawn is a pool whose offer does not exist any more; nil without one.
	withdrawn *platform.Pool
}

// add adds a pool of an engine.
func (s *servingPools) add(p platform.Pool, in NewTask) {
	s.mocked = s.mocked || p.Engine.Kind == platform.EngineMock
	if p.Engine.Model != in.Model {
		return
	}
	s.known = true
	switch fits := in.Engine == "" || string(p.Engine.Kind) == in.Engine; {
	case !fits:
	case p.Origin != nil && p.Origin.Withdrawn():
		s.withdrawn = &p
	case p.Draining:
		s.draining = true
	case p.Origin != nil:
		s.hosted = append(s.hosted, p)
	default:
		s.own = append(s.own, p)
	}
}

// best returns the pools of the tenant, or those that others offer if it has none.
func (s *servingPools) best() []platform.Pool {
	if len(s.own) > 0 {
		return s.own
	}
	return s.hosted
}

// refusal returns the fault of a request that no pool serves.
func (s *servingPools) refusal(in NewTask) error {
	switch {
	case s.mocked && in.Model == mockedUnavailable:
		return fault.New(fault.PoolUnavailable, "the model %s causes this error", mockedUnavailable)
	case s.draining:
		return fault.New(fault.PoolUnready, "the pools that serve the model %s are draining", in.Model)
	case s.withdrawn != nil:
		f := fault.New(fault.PoolUnavailable, "the tenant %s does not offer the pool %s any more", s.withdrawn.Origin.Tenant, s.withdrawn.ID)
		f.Retryable = false
		return f
	case s.known:
		return fault.New(fault.PoolUnavailable, "no pool serves the model %s with the engine %q", in.Model, in.Engine)
	}
	return fault.New(fault.ModelUnknown, "no pool serves the model %q; GET /v1/capabilities lists the engines, GET /v1/pools the pools", in.Model)
}

// eachEngine calls do with the pools of a tenant that have an engine, their own or that of the tenant
// that offers it.
func (s *offers) eachEngine(ctx context.Context, tenant string, do func(platform.Pool) error) error {
	for page := (port.Page{Limit: enginePage}); ; {
		stored, next, err := s.store.PoolRecords(ctx, tenant, page)
		if err != nil {
			return fmt.Errorf("cannot list the pools: %w", err)
		}
		for _, p := range stored {
			if p, err = s.pools.Hosted(ctx, p); err != nil {
				return err
			}
			if p.Engine == nil {
				continue
			}
			if err := do(p); err != nil {
				return err
			}
		}
		if page.Cursor = next; next == "" {
			return nil
		}
	}
}

// modelIn returns the model of a request as the catalog of the pool's owner has it, if the caller's does
// not have it.
func (s *offers) modelIn(ctx context.Context, in NewTask, pool platform.Pool, own catalog.Model) (catalog.Model, error) {
	if pool.Origin == nil || own.ID != "" {
		return own, nil
	}
	in.Identity = port.Identity{Tenant: pool.Origin.Tenant}
	return s.model(ctx, in)
}
