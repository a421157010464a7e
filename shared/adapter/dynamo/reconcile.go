package dynamo

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Reconcile implements port.Store. It compares the pool's slots and queue with the slots of the
// tenant's living runs in the index, which may miss the newest commits. If they differ, it
// reads the record and corrects the pool's items. If a run changes meanwhile, the next call
// corrects it.
//
// It keeps in memory a few bytes for each run, and the items only of runs that differ. One call
// corrects at most reconcileRuns of these. Calls for the pools of jobs share a survey of the
// index.
func (s *Store) Reconcile(ctx context.Context, tenant, pool string) (int, error) {
	changed, err := s.reconcile(ctx, tenant, pool)
	if err == nil && !isSidePool(pool) {
		var turns int
		turns, err = s.reconcileTurns(ctx, pkPool(tenant, pool))
		changed += turns
	}
	return changed, wrap(err, "reconcile pool", pool)
}

const (
	// reconcilePage is how many items or entries Reconcile reads at a time.
	reconcilePage = 1000
	// reconcileRuns is the number of runs that one call corrects.
	reconcileRuns = 1000
)

// usage has the slots of a run in a pool, and the sort keys of its queue items.
type usage struct {
	slots []int
	queue []string
}

// tally has the numbers of a run's slots and queue items in a pool, and the state of its slot
// in the index.
type tally struct {
	slots, queue uint8
	recorded     platform.SlotState
}

func (t tally) agrees() bool {
	switch t.recorded {
	case platform.SlotHeld:
		return t.slots == 1 && t.queue == 0
	case platform.SlotQueued:
		return t.slots == 0 && t.queue == 1
	}
	return t.slots == 0 && t.queue == 0
}

func (s *Store) reconcile(ctx context.Context, tenant, pool string) (changed int, err error) {
	in := pkPool(tenant, pool)
	seed := maphash.MakeSeed()
	hash := func(id string) uint64 { return maphash.String(seed, id) }
	tallies := map[uint64]tally{}
	living, err := s.recordedBy(ctx, tenant, pool)
	if err != nil {
		return 0, err
	}
	if err := s.usages(ctx, in, func(id, sk string, _ int) {
		t := tallies[hash(id)]
		if sk == "" {
			t.slots = min(t.slots, 1) + 1
		} else {
			t.queue = min(t.queue, 1) + 1
		}
		tallies[hash(id)] = t
	}); err != nil {
		return 0, err
	}
	if err := living(func(id string, state platform.SlotState) {
		t := tallies[hash(id)]
		t.recorded = state
		tallies[hash(id)] = t
	}); err != nil {
		return 0, err
	}
	maps.DeleteFunc(tallies, func(_ uint64, t tally) bool { return t.agrees() })
	if len(tallies) == 0 {
		return 0, nil
	}
	return s.correct(ctx, tenant, pool, living, func(id string) bool { _, differs := tallies[hash(id)]; return differs })
}

// correct reads the items of the runs that differ and corrects them.
func (s *Store) correct(
	ctx context.Context, tenant, pool string, living recorded, differs func(id string) bool,
) (changed int, err error) {
	in := pkPool(tenant, pool)
	usages, numbers := map[string]*usage{}, map[int]bool{}
	of := func(id string) *usage {
		if usages[id] == nil {
			usages[id] = &usage{}
		}
		return usages[id]
	}
	wanted := func(id string) bool { return differs(id) && (usages[id] != nil || len(usages) < reconcileRuns) }
	if err := s.usages(ctx, in, func(id, sk string, slot int) {
		if sk == "" {
			numbers[slot] = true
		}
		switch {
		case !wanted(id):
		case sk == "":
			of(id).slots = append(of(id).slots, slot)
		default:
			of(id).queue = append(of(id).queue, sk)
		}
	}); err != nil {
		return 0, err
	}
	if err := living(func(id string, _ platform.SlotState) {
		if wanted(id) {
			of(id)
		}
	}); err != nil {
		return 0, err
	}
	var failed []error
	for _, id := range slices.Sorted(maps.Keys(usages)) {
		is := usages[id]
		n, err := s.reconcileRun(ctx, run.Ref{Tenant: tenant, ID: id}, pool, is, numbers)
		changed, failed = changed+n, append(failed, err)
	}
	return changed, errors.Join(failed...)
}

// usages calls do for each slot and queue item of a pool; sk is empty for a slot.
func (s *Store) usages(ctx context.Context, in string, do func(id, sk string, slot int)) error {
	query := s.queryPartition(in)
	query.Limit = aws.Int32(reconcilePage)
	return s.each(ctx, query, func(is item) bool {
		sk := textOf(is[schema.Sort.Name])
		if n, ok := slotNumber(sk); ok {
			do(textOf(is[attrRun]), "", n)
		} else if id, ok := enqueued(sk); ok {
			do(id, sk, 0)
		}
		return true
	})
}

// recorded calls do for each living run that a pool counts.
type recorded func(do func(id string, state platform.SlotState)) error

// recordedBy returns the living runs of the tenant that the pool counts according to
// the index, eventually consistent.
func (s *Store) recordedBy(ctx context.Context, tenant, pool string) (recorded, error) {
	if !isSidePool(pool) {
		return func(do func(id string, state platform.SlotState)) error {
			return s.eachSlotMark(ctx, tenant, func(id string, state platform.SlotState, of string) {
				if of == pool {
					do(id, state)
				}
			})
		}, nil
	}
	states, err := s.surveyed(ctx, tenant, pool)
	return func(do func(id string, state platform.SlotState)) error {
		for id, state := range states {
			do(id, state)
		}
		return nil
	}, err
}

// reconcileRun makes the pool's items of the run agree with its record. numbers are the held
// slots.
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
		if r, err = s.recordOf(stored); err != nil {
			return 0, err
		}
		guard.where(attrNonce, "=", stored[attrNonce])
	}
	slot, state, attribute := slotIn(r, pool)
	if stored != nil {
		guard.sameSlot(stored, attribute)
	}
	in := pkPool(ref.Tenant, pool)
	var parts []*part
	keeps, kept := r.slot(attribute)
	kept = kept && state == platform.SlotHeld
	found := false
	for _, n := range is.slots {
		if state == platform.SlotHeld && (n == keeps || !kept) && !found {
			found = true
			if !kept {
				guard.set(attribute, number(int64(n)))
			}
			continue
		}
		p := &part{key: slotKey(in, n), remove: true}
		p.heldBy(ref.ID)
		parts = append(parts, p)
	}
	missing := state == platform.SlotHeld && !found
	n := 0
	if missing {
		if n, missing, err = s.missingSlot(ctx, in, r, attribute, numbers); err != nil {
			return 0, err
		}
	}
	if missing {
		numbers[n] = true
		put := slotKey(in, n)
		put[attrRun] = text(ref.ID)
		p := &part{put: put}
		p.absent(schema.Partition.Name)
		parts = append(parts, p)
		guard.set(attribute, number(int64(n)))
	}
	parts = append(parts, is.queueParts(in, slot, ref.ID, state == platform.SlotQueued)...)
	if len(parts) == 0 && len(guard.sets) == 0 {
		return 0, nil
	}
	err = s.write(ctx, append(parts, guard))
	if errors.Is(err, errAgain) {
		return 0, nil
	}
	return len(parts), err
}

// slotIn returns the slot of the run in a pool with its state, which is empty if the run has
// none, and the attribute with the number of the slot.
func slotIn(r *record, pool string) (slot platform.Slot, state platform.SlotState, attribute string) {
	slot, state, attribute = r.Slot, r.PoolState(), attrSlot
	switch pool {
	case r.JobSlot.Pool:
		slot, state, attribute = r.JobSlot, r.JobPoolState(), attrJobSlot
	case r.KeySlot.Pool:
		slot, state, attribute = r.KeySlot, r.KeyPoolState(), attrKeySlot
	}
	if slot.Pool != pool {
		state = ""
	}
	return slot, state, attribute
}

// queueParts returns the writes after which a pool has a queue item of the run only if the run
// is queued with the slot.
func (is *usage) queueParts(in string, slot platform.Slot, id string, queued bool) (parts []*part) {
	for _, sk := range is.queue {
		if queued && sk == queueSort(slot, id) {
			queued = false
			continue
		}
		parts = append(parts, &part{key: keyOf(in, sk), remove: true})
	}
	if queued {
		parts = append(parts, &part{put: queueItem(in, slot, id)})
	}
	return parts
}

// missingSlot returns the number of the slot to create for a run that has no slot in the pool
// as it was read. missing is false if a grant has created the slot since then.
func (s *Store) missingSlot(ctx context.Context, in string, r *record, attribute string, numbers map[int]bool) (n int, missing bool, err error) {
	if n, ok := r.slot(attribute); ok {
		slot, err := s.get(ctx, slotKey(in, n), true)
		if err != nil || slot == nil || textOf(slot[attrRun]) == r.ID {
			return n, slot == nil, err
		}
	}
	for numbers[n] {
		n++
	}
	return n, true, nil
}
