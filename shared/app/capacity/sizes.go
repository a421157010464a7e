package capacity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// Sizes reads the use and the limits of all pools.
type Sizes struct {
	store  sizedPools
	tenant string
	pool   string
	limit  int
}

// sizedPools has pools and their use.
type sizedPools interface {
	port.PoolStore
	port.LeaseStore
}

// NewSizes returns Sizes. standard is the default pool; a pool without a record has its
// limit. tenant is a tenant whose pools are included even if no pool is used.
func NewSizes(store sizedPools, tenant string, standard platform.Pool) *Sizes {
	return &Sizes{store, tenant, standard.ID, standard.Limit}
}

// Read returns the pools in use and the default pool. For the tenants of these it also returns the
// pools with a record. It omits the slots of jobs and keys, whose number is unbounded.
func (s *Sizes) Read(ctx context.Context) ([]port.PoolSize, error) {
	uses, err := s.store.Pools(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the use of the pools: %w", err)
	}
	uses = slices.DeleteFunc(uses, func(u port.PoolUse) bool { return strings.Contains(u.Pool, "/") })
	uses = append(uses, port.PoolUse{Tenant: s.tenant, Pool: s.pool})
	var tenants []string
	for _, u := range uses {
		tenants = append(tenants, u.Tenant)
	}
	slices.Sort(tenants)
	sizes := map[platform.PoolRef]*port.PoolSize{}
	for _, tenant := range slices.Compact(tenants) {
		if err := s.records(ctx, tenant, sizes); err != nil {
			return nil, err
		}
	}
	for _, u := range uses {
		ref := platform.PoolRef{Tenant: u.Tenant, ID: u.Pool}
		if sizes[ref] == nil {
			sizes[ref] = &port.PoolSize{PoolUse: port.PoolUse{Tenant: u.Tenant, Pool: u.Pool}, Limit: s.limit}
		}
		sizes[ref].Held, sizes[ref].Queued = sizes[ref].Held+u.Held, sizes[ref].Queued+u.Queued
	}
	all := make([]port.PoolSize, 0, len(sizes))
	for _, size := range sizes {
		all = append(all, *size)
	}
	slices.SortFunc(all, func(a, b port.PoolSize) int {
		return strings.Compare(a.Tenant+"\x00"+a.Pool, b.Tenant+"\x00"+b.Pool)
	})
	return all, nil
}

// Samples returns the gauges of the pools.
func (s *Sizes) Samples(ctx context.Context) ([]series.Sample, error) {
	sizes, err := s.Read(ctx)
	if err != nil {
		return nil, err
	}
	var all []series.Sample
	for _, p := range sizes {
		labels := []string{p.Tenant, p.Pool}
		all = append(all,
			series.Sample{Name: series.PoolHeld, Value: float64(p.Held), Labels: labels},
			series.Sample{Name: series.PoolQueued, Value: float64(p.Queued), Labels: labels},
			series.Sample{Name: series.PoolLimit, Value: float64(p.Limit), Labels: labels},
		)
	}
	return all, nil
}

// records adds the pools of a tenant that have a record.
func (s *Sizes) records(ctx context.Context, tenant string, to map[platform.PoolRef]*port.PoolSize) error {
	for cursor := ""; ; {
		pools, next, err := s.store.PoolRecords(ctx, tenant, port.Page{Limit: 1000, Cursor: cursor})
		if err != nil {
			return fmt.Errorf("cannot read the pools: %w", err)
		}
		for _, p := range pools {
			to[p.Ref()] = &port.PoolSize{PoolUse: port.PoolUse{Tenant: p.Tenant, Pool: p.ID}, Limit: p.Limit}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}
