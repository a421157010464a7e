package dynamo

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/run"
)

// Reconcile implements port.Store. It compares the pool's slots and queue with
// the records of the tenant's living runs from the index, which may miss the
// newest. Where they differ it reads the record again and follows it. A run
// that changes meanwhile waits for the next call.
func (s *Store) Reconcile(ctx context.Context, tenant, pool string) (int, error) {
	changed, err := s.reconcile(ctx, tenant, pool)
	return changed, wrap(err, "reconcile pool", pool)
}

// usage is what the pool's items say about a run.
type usage struct {
	slots []int
	queue []string
}

func (s *usage) agrees(with run.SlotState) bool {
	switch with {
	case run.SlotHeld:
		return len(s.slots) == 1 && len(s.queue) == 0
	case run.SlotQueued:
		return len(s.slots) == 0 && len(s.queue) == 1
	}
	return false
}

func (s *Store) reconcile(ctx context.Context, tenant, pool string) (changed int, err error) {
	in := pkPool(tenant, pool)
	usages, numbers := map[string]*usage{}, map[int]bool{}
	of := func(id string) *usage {
		if usages[id] == nil {
			usages[id] = &usage{}
		}
		return usages[id]
	}
	if err := s.each(ctx, s.under(in), func(is item) bool {
		sk := textOf(is[schema.Sort.Name])
		if n, ok := slotNumber(sk); ok {
			numbers[n] = true
			st := of(textOf(is[attrRun]))
			st.slots = append(st.slots, n)
		} else if id, ok := enqueued(sk); ok {
			of(id).queue = append(of(id).queue, sk)
		}
		return true
	}); err != nil {
		return 0, err
	}
	recorded, err := s.recorded(ctx, tenant, pool)
	if err != nil {
		return 0, err
	}
	for id := range recorded {
		of(id)
	}
	for _, id := range slices.Sorted(maps.Keys(usages)) {
		is := usages[id]
		if is.agrees(recorded[id]) {
			continue
		}
		n, err := s.reconcileRun(ctx, run.Ref{Tenant: tenant, ID: id}, pool, is, numbers)
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}

// recorded returns the slot states of the tenant's living runs in the pool,
// eventually consistent.
func (s *Store) recorded(ctx context.Context, tenant, pool string) (map[string]run.SlotState, error) {
	var entries []item
	for n := range listShards {
		q := s.indexQuery(schema.IndexList, attrList, listKey(tenant, living, strconv.Itoa(n)))
		if err := s.each(ctx, q, func(is item) bool {
			entries = append(entries, is)
			return true
		}); err != nil {
			return nil, err
		}
	}
	records, err := s.records(ctx, entries, false)
	states := map[string]run.SlotState{}
	for _, r := range records {
		if how := r.PoolState(); how != "" && r.Slot.Pool == pool {
			states[r.ID] = how
		}
	}
	return states, err
}

// reconcileRun changes the pool's items of the run to what its record says. numbers
// are the held slots.
func (s *Store) reconcileRun(ctx context.Context, ref run.Ref, pool string, is *usage, numbers map[int]bool) (int, error) {
	stored, err := s.get(ctx, runKey(ref), true)
	if err != nil {
		return 0, err
	}
	guard := &part{key: runKey(ref)}
	r := &record{}
	if stored == nil {
		guard.absent(schema.Partition.Name)
	} else {
		if r, err = recordOf(stored); err != nil {
			return 0, err
		}
		guard.where(attrNonce, "=", stored[attrNonce])
	}
	state := r.PoolState()
	if r.Slot.Pool != pool {
		state = ""
	}
	in := pkPool(ref.Tenant, pool)
	var parts []*part
	keeps, kept := r.slot()
	kept = kept && state == run.SlotHeld
	found := false
	for _, n := range is.slots {
		if state == run.SlotHeld && (n == keeps || !kept) && !found {
			found = true
			if !kept {
				guard.set(attrSlot, number(int64(n)))
			}
			continue
		}
		p := &part{key: slotKey(in, n), remove: true}
		p.heldBy(ref.ID)
		parts = append(parts, p)
	}
	if state == run.SlotHeld && !found {
		n := 0
		for numbers[n] {
			n++
		}
		numbers[n] = true
		put := slotKey(in, n)
		put[attrRun] = text(ref.ID)
		p := &part{put: put}
		p.absent(schema.Partition.Name)
		parts = append(parts, p)
		guard.set(attrSlot, number(int64(n)))
	}
	lacks := state == run.SlotQueued
	for _, sk := range is.queue {
		if lacks && sk == queueSort(r.Run) {
			lacks = false
			continue
		}
		parts = append(parts, &part{key: keyOf(in, sk), remove: true})
	}
	if lacks {
		parts = append(parts, &part{put: queueKey(in, r.Run)})
	}
	if len(parts) == 0 && len(guard.sets) == 0 {
		return 0, nil
	}
	err = s.write(ctx, append(parts, guard))
	if errors.Is(err, errAgain) {
		return 0, nil
	}
	return len(parts), err
}
