package orchestrator

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// fallbacks returns the fallbacks of the pool that the run is in, or queues for next, and then those of its own
// pool. A pool that does not exist, is draining or cannot be read is left out.
func (s *Lifecycle) fallbacks(ctx context.Context, r run.Run) (open []run.Fallback) {
	pools := []string{r.NextPool()}
	if r.Detour != nil && r.Detour.Home != pools[0] {
		pools = append(pools, r.Detour.Home)
	}
	for _, name := range pools {
		from, err := s.pools.pool(ctx, r.Tenant, name)
		if err != nil {
			s.warn(ctx, r, "cannot read the fallbacks of pool "+name, err)
			continue
		}
		for _, f := range from.Fallbacks {
			to, err := s.pools.pool(ctx, r.Tenant, f.Pool)
			if err != nil && !errors.Is(err, port.ErrNotFound) {
				s.warn(ctx, r, "cannot read the fallback "+f.Pool, err)
			}
			if err == nil && !to.Draining {
				open = append(open, f)
			}
		}
	}
	return open
}

// checkFallbacks returns the fault of the fallbacks of a pool. A pool cannot lead back to
// itself.
func (s *Pools) checkFallbacks(ctx context.Context, tenant, id string, fallbacks []run.Fallback) error {
	if f := run.CheckFallbacks(id, fallbacks); f != nil {
		return f
	}
	for i, f := range fallbacks {
		refused := func(format string, args ...any) error {
			f := fault.New(fault.Unprocessable, format, args...)
			f.Field = "fallback." + strconv.Itoa(i) + ".pool"
			return f
		}
		seen := map[string]bool{}
		for open := []string{f.Pool}; len(open) > 0; open = open[1:] {
			if seen[open[0]] {
				continue
			}
			seen[open[0]] = true
			next, err := s.pools.read(ctx, run.PoolRef{Tenant: tenant, ID: open[0]})
			switch {
			case errors.Is(err, port.ErrNotFound) && open[0] == f.Pool:
				return refused("unknown pool %q, want a pool of GET /v1/pools", limit.Cut(f.Pool, limit.FileName))
			case errors.Is(err, port.ErrNotFound):
				continue
			case err != nil:
				return err
			}
			for _, further := range next.Fallbacks {
				if further.Pool == id {
					return refused("pool %s leads back to %s by pool %s, want no cycle", f.Pool, id, next.ID)
				}
				open = append(open, further.Pool)
			}
		}
	}
	return nil
}

// ThrottledFor returns the duration of a number of seconds in a request. Fault:
// InvalidRequest with the field.
func ThrottledFor(field string, seconds int) (time.Duration, error) {
	if seconds < 1 || seconds > int(run.MaxThrottledFor/time.Second) {
		return 0, fault.Invalid(field, "%d is out of range, want 1 to %d", seconds, run.MaxThrottledFor/time.Second)
	}
	return time.Duration(seconds) * time.Second, nil
}
