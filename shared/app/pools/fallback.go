package pools

import (
	"context"
	"errors"
	"strconv"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// checkFallbacks returns the faults of the fallbacks of a pool, each with its field. The
// fallbacks must not lead back to the pool, and have an engine if the pool has one.
func (s *common) checkFallbacks(ctx context.Context, tenant, id string, d Definition) (found []*fault.Fault, err error) {
	engine := d.Engine != nil
	if found = platform.CheckFallbacks(id, d.Fallbacks, engine); len(found) > 0 {
		return found, nil
	}
	for i, f := range d.Fallbacks {
		problem, err := s.checkFallback(ctx, tenant, id, f, engine)
		if err != nil {
			return nil, err
		}
		if problem != nil {
			problem.Field = "fallback." + strconv.Itoa(i) + ".pool"
			found = append(found, problem)
		}
	}
	return found, nil
}

// checkFallback returns the fault of a fallback whose pool does not exist, has no engine for a pool
// of an engine and conversely, or leads back to the pool; otherwise nil.
func (s *common) checkFallback(ctx context.Context, tenant, id string, f platform.Fallback, engine bool) (*fault.Fault, error) {
	seen := map[string]bool{}
	for open := []string{f.Pool}; len(open) > 0; open = open[1:] {
		if seen[open[0]] {
			continue
		}
		seen[open[0]] = true
		next, err := s.capacity.Pools.Read(ctx, platform.PoolRef{Tenant: tenant, ID: open[0]})
		switch {
		case errors.Is(err, port.ErrNotFound) && open[0] == f.Pool:
			return fault.New(fault.Unprocessable, "unknown pool %q, want a pool of GET /v1/pools", limit.Cut(f.Pool, limit.FileName)), nil
		case errors.Is(err, port.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case next.Origin != nil:
			return fault.New(fault.Unprocessable, "the pool %s is of another tenant, want a pool of an engine of your own", next.ID), nil
		case next.Engine != nil && !engine:
			return fault.New(fault.Unprocessable, "the pool %s is of an engine, want a pool of a runner", next.ID), nil
		case next.Engine == nil && engine:
			return fault.New(fault.Unprocessable, "the pool %s is of a runner, want a pool of an engine", next.ID), nil
		}
		for _, further := range next.Fallbacks {
			if further.Pool == id {
				return fault.New(fault.Unprocessable, "pool %s leads back to %s by pool %s, want no cycle", f.Pool, id, next.ID), nil
			}
			open = append(open, further.Pool)
		}
	}
	return nil, nil //nolint:nilnil // no fault and no error
}
