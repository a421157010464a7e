package warm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/app/crew"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// recordOf returns the record id of a listed machine.
func recordOf(m port.MachineStatus) string { return cmp.Or(m.Warm.ID, m.Reuse.ID) }

// byTenant orders pools by tenant and id.
func byTenant(a, b platform.PoolRef) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
}

// Sweep creates and ends warm machines until each pool matches its settings. It destroys
// those without a record: machines of deleted pools, and of creations whose answer was lost.
// listed has the warm machines that the runner has listed, by pool and id.
func (s *Machines) Sweep(ctx context.Context, listed map[platform.PoolRef]map[string]port.MachineStatus) error {
	if _, ok := s.runner.(port.WarmMachines); !ok {
		return nil
	}
	var failed crew.Failures
	pools := map[platform.PoolRef]platform.Pool{}
	failed.Add(s.warmPools(ctx, pools))
	for _, ref := range slices.SortedFunc(maps.Keys(listed), byTenant) {
		if _, ok := pools[ref]; ok {
			continue
		}
		p, err := s.capacity.Pools.Read(ctx, ref)
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			failed.Add(err)
			continue
		}
		p.Tenant, p.ID = ref.Tenant, ref.ID // a deleted pool has no settings
		pools[ref] = p
	}
	firings, err := s.upcoming(ctx, pools)
	failed.Add(err)
	for _, ref := range slices.SortedFunc(maps.Keys(pools), byTenant) {
		if ctx.Err() == nil {
			failed.Add(s.keepWarm(ctx, pools[ref], firings[ref], listed[ref], &failed))
		}
	}
	return failed.Join(ctx)
}

// warmPools reads the pools with warm machines.
func (s *Machines) warmPools(ctx context.Context, into map[platform.PoolRef]platform.Pool) error {
	for after := ""; ; {
		due, next, err := s.store.PoolsDue(ctx, s.now(), after, pageSize)
		if err != nil {
			return fmt.Errorf("cannot read the pools with warm machines: %w", err)
		}
		for _, ref := range due {
			p, err := s.capacity.Pools.Read(ctx, ref)
			if errors.Is(err, port.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if p.Warm != nil || p.WarmLeft {
				into[ref] = p
			}
		}
		if after = next; next == "" || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// upcoming counts, by pool and key, the firings of jobs within the time Warm.Ahead of their
// pool. Each firing needs a machine.
func (s *Machines) upcoming(ctx context.Context, pools map[platform.PoolRef]platform.Pool) (map[platform.PoolRef]map[platform.WarmKey]int, error) {
	var ahead time.Duration
	for _, p := range pools {
		if p.Warm != nil && !p.Draining {
			ahead = max(ahead, p.Warm.Ahead)
		}
	}
	found := map[platform.PoolRef]map[platform.WarmKey]int{}
	for after := ""; ahead > 0; {
		due, next, err := s.store.JobsDue(ctx, s.now().Add(ahead), after, pageSize)
		if err != nil {
			return found, fmt.Errorf("cannot read the next firings: %w", err)
		}
		for _, ref := range due {
			j, err := s.store.LoadJob(ctx, ref.Tenant, ref.ID)
			if errors.Is(err, port.ErrNotFound) {
				continue
			}
			if err != nil {
				return found, fmt.Errorf("cannot read job %s: %w", ref.ID, err)
			}
			pool := s.capacity.Pools.Ref(j.Tenant, j.Definition.Pool)
			p, ok := pools[pool]
			if !ok || p.Warm == nil || !j.Due(s.now().Add(p.Warm.Ahead)) {
				continue
			}
			if found[pool] == nil {
				found[pool] = map[platform.WarmKey]int{}
			}
			found[pool][s.config.Key(j.Run(s.config.Policy).Work, p.Placement)] += j.Upcoming(s.now().Add(p.Warm.Ahead), p.Warm.Max)
		}
		if after = next; next == "" {
			break
		}
	}
	return found, ctx.Err()
}

// keepWarm ends, recycles and creates warm machines of a pool as fleet.PlanWarm decides.
func (s *Machines) keepWarm(
	ctx context.Context, p platform.Pool, firing map[platform.WarmKey]int, listed map[string]port.MachineStatus, failed *crew.Failures,
) error {
	have, err := s.store.WarmMachines(ctx, p.Ref())
	if err != nil {
		return err
	}
	known := map[string]bool{}
	var current []platform.WarmMachine
	for _, w := range have {
		known[w.ID] = true
		w, err := s.warmSeen(ctx, p, w, listed)
		if err != nil {
			failed.Add(err)
			continue
		}
		current = append(current, w)
	}
	for _, id := range slices.Sorted(maps.Keys(listed)) {
		m := listed[id]
		if !known[recordOf(m)] {
			failed.Add(s.destroyStray(ctx, m, p.Warm != nil))
		}
	}
	standard := s.config.Key(spec.Work{}, p.Placement)
	if w := p.Warm; w != nil {
		standard.Image, standard.CPUs, standard.MemoryMB = cmp.Or(w.Image, standard.Image), cmp.Or(w.CPUs, standard.CPUs), cmp.Or(w.MemoryMB, standard.MemoryMB)
	}
	if p.WarmLeft && len(have)+len(listed) == 0 {
		return s.warmEnded(ctx, p)
	}
	plan := fleet.PlanWarm(p, standard, firing, current, s.now())
	if plan.Stuck > 0 {
		s.log.WarnContext(ctx, "warm machines stayed in their creation and are destroyed", "pool", p.ID, "machines", plan.Stuck)
	}
	for _, w := range plan.Save {
		if err := s.store.SaveWarm(ctx, w); err != nil && !errors.Is(err, port.ErrConflict) {
			failed.Add(fmt.Errorf("cannot store a warm machine: %w", err))
		}
	}
	ends := crew.New(s.config.Workers, failed)
	for _, w := range plan.End {
		ends.Do(ctx, func(ctx context.Context) error { return s.endWarm(ctx, w) })
	}
	for _, w := range plan.Recycle {
		ends.Do(ctx, func(ctx context.Context) error { return s.recycle(ctx, w) })
	}
	ends.Wait()
	return s.createWarm(ctx, p, plan.Create, failed)
}

// warmEnded stores that a pool has no warm machines left.
func (s *Machines) warmEnded(ctx context.Context, p platform.Pool) error {
	ended := p.WarmEnded(s.now())
	if ended.WarmLeft {
		return nil
	}
	if err := s.store.SavePool(ctx, ended); err != nil && !errors.Is(err, port.ErrConflict) {
		return fmt.Errorf("cannot store pool %s: %w", p.ID, err)
	}
	return nil
}

// warmSeen updates the record from the list and stores it: ready once its machine is stopped,
// ending once its run no longer needs it. For a machine that can be recycled, it returns the
// record for the recycling and does not store it.
func (s *Machines) warmSeen(ctx context.Context, p platform.Pool, w platform.WarmMachine, listed map[string]port.MachineStatus) (platform.WarmMachine, error) {
	before := w.Phase
	switch w.Phase {
	case platform.WarmCreating:
		for _, m := range listed {
			if m.Warm == w.Ref() && m.Phase == port.MachineEnding {
				w.Machine, w.Digest, w.Phase = m.Machine, m.Digest, platform.WarmReady
			}
		}
	case platform.WarmClaimed:
		r, err := s.store.Load(ctx, run.Ref{Tenant: w.Tenant, ID: w.Run})
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			return w, fmt.Errorf("cannot read run %s: %w", w.Run, err)
		}
		if err == nil && r.Claims(w) {
			break
		}
		if again, ok, err := s.recyclable(ctx, p, w); ok || err != nil {
			return again, err
		}
		w.Phase = platform.WarmEnding
	}
	if w.Phase == before {
		return w, nil
	}
	return s.saveWarm(ctx, w)
}

// saveWarm stores a record and returns it with its new version.
func (s *Machines) saveWarm(ctx context.Context, w platform.WarmMachine) (platform.WarmMachine, error) {
	if err := s.store.SaveWarm(ctx, w); err != nil {
		return w, err
	}
	w.Version++
	return w, nil
}

// endWarm destroys a warm machine, and deletes its record once the machine is gone. A
// machine that was claimed meanwhile stays.
func (s *Machines) endWarm(ctx context.Context, w platform.WarmMachine) (err error) {
	if w.Phase != platform.WarmEnding {
		w.Phase = platform.WarmEnding
		if w, err = s.saveWarm(ctx, w); errors.Is(err, port.ErrConflict) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if w.Machine.Known() {
		if err := s.runner.Destroy(ctx, w.Machine); err != nil {
			return err
		}
		m, err := s.runner.Wait(ctx, w.Machine, port.MachineGone, strayWait)
		if left := err == nil && (m.Phase != port.MachineGone || m.Reuse.ID != ""); left || err != nil && !errors.Is(err, port.ErrNotFound) {
			return err // the next sweep sees it gone
		}
	} // a machine whose answer was lost then has no record, and is destroyed as a stray
	if err := s.store.DeleteWarm(ctx, w); err != nil && !errors.Is(err, port.ErrConflict) {
		return err
	}
	return nil
}

// destroyStray destroys a warm machine without a record. poolIsWarm reports that its pool has
// warm machines; otherwise the record was deleted with that setting. It decides the log level.
func (s *Machines) destroyStray(ctx context.Context, m port.MachineStatus, poolIsWarm bool) error {
	if m.Phase == port.MachineGone && m.Reuse.ID == "" {
		return nil
	}
	if err := s.runs.MayDestroyUnknown(ctx, m); err != nil {
		return err
	}
	level := slog.LevelInfo
	if poolIsWarm {
		level = slog.LevelWarn
	}
	s.log.LogAttrs(ctx, level, "a warm machine without a record is destroyed", about.Machine(m, run.Run{})...)
	return s.runner.Destroy(ctx, m.Machine)
}
