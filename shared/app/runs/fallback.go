package runs

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// fallbacks returns the fallbacks of the run's current or next pool, and then those of the pool
// that it has fallen back from. It omits a pool that does not exist, is draining or cannot be
// read.
func (s *forecasts) fallbacks(ctx context.Context, r run.Run) (open []platform.Fallback) {
	pools := []string{r.NextPool()}
	if r.Detour != nil && r.Detour.Home != pools[0] {
		pools = append(pools, r.Detour.Home)
	}
	for _, name := range pools {
		from, err := s.pools.Pool(ctx, r.Tenant, name)
		if err != nil {
			s.warn(ctx, r, "cannot read the fallbacks of pool "+name, err)
			continue
		}
		for _, f := range from.Fallbacks {
			to, err := s.pools.Pool(ctx, r.Tenant, f.Pool)
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

// ThrottledFor converts the seconds in a field of a request to a duration. Fault:
// InvalidRequest with the field, outside of 1 s to platform.MaxThrottledFor.
func ThrottledFor(field string, seconds int) (time.Duration, *fault.Fault) {
	if seconds < 1 || seconds > int(platform.MaxThrottledFor/time.Second) {
		return 0, fault.Invalid(field, "%d is out of range, want 1 to %d", seconds, platform.MaxThrottledFor/time.Second)
	}
	return time.Duration(seconds) * time.Second, nil
}
