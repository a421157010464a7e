package inferences

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// queueSample is the number of queued tasks whose priorities are read.
const queueSample = 200

// Levels returns the gauges of a tenant's pools of engines, of their replicas and of the models
// of its catalog. It is a series.Reader.
func (s *engines) Levels(ctx context.Context, tenant string) (all []series.Sample, err error) {
	var asked sync.WaitGroup
	var mu sync.Mutex
	err = s.eachEngine(ctx, tenant, func(p platform.Pool) error {
		p, err := s.capacity.Replicas.Served(ctx, p)
		if err != nil {
			return err
		}
		known := s.replicas.Known(p)
		found, err := s.poolLevels(ctx, p, known)
		if err != nil {
			return err
		}
		mu.Lock()
		all = append(all, found...)
		mu.Unlock()
		for _, each := range known {
			asked.Go(func() {
				found := levelsOf(ctx, each, p)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, found...)
			})
		}
		return nil
	})
	asked.Wait()
	models, lost := s.modelLevels(ctx, tenant)
	return append(all, models...), errors.Join(err, lost)
}

// poolLevels returns the samples of a pool whose replicas this process knows.
func (s *engines) poolLevels(ctx context.Context, p platform.Pool, known []balance.Known) ([]series.Sample, error) {
	holders, err := s.store.Holders(ctx, p.Tenant, p.ID, max(p.Limit, 1))
	if err != nil {
		return nil, fmt.Errorf("cannot count the slots of pool %s: %w", p.ID, err)
	}
	version, resting := "", 0
	for _, each := range known {
		version = cmp.Or(version, each.Can.Version)
		if each.Resting {
			resting++
		}
	}
	ready := 0
	if !p.Draining && resting < len(p.Engine.Replicas) {
		ready = 1
	}
	samples := []series.Sample{series.Count(series.ActiveLeases, len(holders), p.ID), series.Count(series.PoolReady, ready, p.ID)}
	depths, err := s.depths(ctx, p)
	for _, priority := range spec.Priorities() {
		samples = append(samples, series.Count(series.QueueDepth, depths[priority], string(p.Engine.Kind), version, p.ID, string(priority)))
	}
	return samples, err
}

// depths counts the queue of a pool by priority. It counts the tasks behind the first
// queueSample ones as tasks with the priority of the last of these.
func (s *engines) depths(ctx context.Context, p platform.Pool) (map[spec.Priority]int, error) {
	refs, err := s.store.Queue(ctx, p.Tenant, p.ID, queueSample)
	if err != nil {
		return nil, fmt.Errorf("cannot read the queue of pool %s: %w", p.ID, err)
	}
	depths := map[spec.Priority]int{}
	last := spec.PriorityNormal
	for _, ref := range refs {
		r, err := s.store.Load(ctx, ref)
		if errors.Is(err, port.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read a task of the queue of pool %s: %w", p.ID, err)
		}
		last = r.Priority.OrNormal()
		depths[last]++
	}
	if len(refs) < queueSample {
		return depths, nil
	}
	whole, err := s.store.QueueLength(ctx, p.Tenant, p.ID, deepestQueue)
	if err != nil {
		return nil, fmt.Errorf("cannot count the queue of pool %s: %w", p.ID, err)
	}
	depths[last] += max(whole-len(refs), 0)
	return depths, nil
}

// levelsOf returns the load that the engine of a replica reports; nil if it does not answer.
func levelsOf(ctx context.Context, r balance.Known, p platform.Pool) (samples []series.Sample) {
	load, err := r.Engine.Load(ctx)
	if err != nil {
		return nil
	}
	for _, each := range []struct {
		name  string
		value *float64
	}{{series.KVCache, load.KVCacheUsageRatio}, {series.GPU, load.GPUUtilization}, {series.VRAM, load.VRAMUsedBytes}} {
		if each.value != nil {
			samples = append(samples, series.Sample{Name: each.name, Value: *each.value, Labels: []string{string(p.Engine.Kind), r.Can.Version, p.ID, r.ID}})
		}
	}
	return samples
}

// modelLevels returns the samples of the models of a tenant.
func (s *engines) modelLevels(ctx context.Context, tenant string) (samples []series.Sample, err error) {
	for page := (port.Page{Limit: enginePage}); ; {
		models, next, err := s.models.List(ctx, port.Identity{Tenant: tenant}, catalog.Filter{}, page)
		if err != nil {
			return nil, err
		}
		for _, m := range models {
			for _, state := range catalog.States() {
				is := 0
				if m.State == state {
					is = 1
				}
				samples = append(samples, series.Count(series.ModelState, is, m.ID, string(state)))
			}
		}
		if page.Cursor = next; next == "" {
			return samples, nil
		}
	}
}
