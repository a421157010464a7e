package pools

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Pool reads a pool of the caller's tenant. Fault: NotFound.
func (s *Pools) Pool(ctx context.Context, who port.Identity, id string) (View, error) {
	p, err := s.stored(ctx, who, id)
	if err != nil {
		return View{}, err
	}
	return s.view(ctx, p)
}

// Pools reads the caller's pools, ordered by id. They include the default pool even
// without a record.
func (s *Pools) Pools(ctx context.Context, who port.Identity) (views []View, err error) {
	standard, err := s.stored(ctx, who, s.capacity.Pools.Standard().ID)
	if err != nil {
		return nil, err
	}
	pools := []platform.Pool{standard}
	for page := (port.Page{Limit: poolPage}); ; {
		stored, next, err := s.store.PoolRecords(ctx, who.Tenant, page)
		if err != nil {
			return nil, fmt.Errorf("cannot list the pools: %w", err)
		}
		for _, p := range stored {
			if p.ID != standard.ID {
				pools = append(pools, p)
			}
		}
		if page.Cursor = next; next == "" {
			break
		}
	}
	slices.SortFunc(pools, func(a, b platform.Pool) int { return cmp.Compare(a.ID, b.ID) })
	for _, p := range pools {
		v, err := s.view(ctx, p)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

// poolPage is the page size of a list of pools.
const poolPage = 1000

// view returns a pool with its use. A guest's pool has the slots that its owner offers.
func (s *Pools) view(ctx context.Context, p platform.Pool) (v View, err error) {
	if v.Pool = p; p.Origin != nil {
		hosted, err := s.capacity.Pools.Hosted(ctx, p)
		if err != nil {
			return v, err
		}
		v.Limit, v.Draining, v.Origin, v.Hosted = hosted.Limit, hosted.Draining, hosted.Origin, hosted.Engine
	}
	v.Held, v.Queued, err = s.usedSlots(ctx, p.Ref())
	return v, err
}
