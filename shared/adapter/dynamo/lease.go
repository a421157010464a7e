package dynamo

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// leaseChange is the change of one slot of a run: the slot of its pool, its job, or its key.
type leaseChange struct {
	*change
	lease run.LeaseChange
	slot  func(run.Run) platform.Slot
	// attribute has the number of the slot in the run's item.
	attribute string
}

func poolSlot(r run.Run) platform.Slot { return r.Slot }
func jobSlot(r run.Run) platform.Slot  { return r.JobSlot }
func keySlot(r run.Run) platform.Slot  { return r.KeySlot }

// movesOf returns the changes of slots.
func movesOf(changes []*change) (moves []leaseChange) {
	for _, c := range changes {
		if c.Lease != "" {
			moves = append(moves, leaseChange{c, c.Lease, poolSlot, attrSlot})
		}
		if c.JobLease != "" {
			moves = append(moves, leaseChange{c, c.JobLease, jobSlot, attrJobSlot})
		}
		if c.KeyLease != "" {
			moves = append(moves, leaseChange{c, c.KeyLease, keySlot, attrKeySlot})
		}
	}
	return moves
}

// after returns the slot after the commit. pool returns the partition key of its pool.
func (m leaseChange) after() platform.Slot { return m.slot(m.Run) }
func (m leaseChange) pool() string         { return pkPool(m.Run.Tenant, m.after().Pool) }

// leaves reports whether the run leaves a slot or a queue, whose item must be found.
func (m leaseChange) leaves() bool { return m.lease != run.LeaseTake && m.lease != run.LeaseEnqueue }

// frees reports whether the run releases its slot.
func (m leaseChange) frees() bool { return m.lease == run.LeaseRelease || m.lease == run.LeaseRequeue }

// leases are the changes of a commit to the pools of its runs.
type leases struct {
	parts []*part
	// held has the slots that runs acquire, left the slots that they release.
	held map[slotOf]slotAt
	left map[slotOf]bool
	// freed has the slots of each pool that the commit releases and has not granted yet, with
	// their holders.
	freed map[string][]lease
	turns map[string]*turn
}

// slotOf identifies a slot of a run: of its pool, its job or its key. slotAt is the item of a
// slot.
type slotOf struct {
	*change
	attribute string
}

type slotAt struct {
	in     string
	number int
}

// lease is a held slot.
type lease struct {
	number int
	run    string
}

// note stores the numbers of the run's slots in the record's item, so that a release finds
// them.
func (l *leases) note(c *change, p *part) {
	for _, attribute := range slotAttributes {
		of := slotOf{c, attribute}
		if at, ok := l.held[of]; ok {
			p.set(attribute, number(int64(at.number)))
		} else if l.left[of] {
			p.drop(attribute)
			p.sameSlot(c.before.is, attribute)
		}
	}
}

// sameSlot adds the condition that the slot's number in the record is the one that was read.
// Reconcile changes it without raising the version.
func (p *part) sameSlot(read item, attribute string) {
	if number, ok := read[attribute]; ok {
		p.where(attribute, "=", number)
	} else {
		p.absent(attribute)
	}
}

// leases plans the changes to slots and queues. It returns a *NoSlot if a run cannot acquire a
// slot. A slot that is released and granted in one commit is written once.
func (s *Store) leases(ctx context.Context, changes []*change) (*leases, error) {
	l := &leases{held: map[slotOf]slotAt{}, left: map[slotOf]bool{}, freed: map[string][]lease{}, turns: map[string]*turn{}}
	moves := movesOf(changes)
	var leaving []*change
	for _, m := range moves {
		if m.leaves() && !slices.Contains(leaving, m.change) {
			leaving = append(leaving, m.change)
		}
	}
	if err := s.checkVersions(ctx, leaving); err != nil {
		return nil, err
	}
	for _, m := range moves {
		if !m.frees() {
			continue
		}
		l.left[slotOf{m.change, m.attribute}] = true
		if n, ok := m.before.slot(m.attribute); ok {
			in := pkPool(m.Run.Tenant, m.slot(m.before.Run).Pool)
			l.freed[in] = append(l.freed[in], lease{n, m.Run.ID})
		}
	}
	pools := map[string]*view{}
	for _, m := range moves {
		if err := s.move(ctx, l, m, moves, pools); err != nil {
			return nil, err
		}
	}
	l.parts = append(l.parts, l.turnParts(s.now())...)
	for _, in := range slices.Sorted(maps.Keys(l.freed)) {
		for _, held := range l.freed[in] {
			p := &part{key: slotKey(in, held.number), remove: true}
			p.heldBy(held.run)
			l.parts = append(l.parts, p)
		}
	}
	return l, nil
}

// move plans one change. release plans the release of a slot.
func (s *Store) move(ctx context.Context, l *leases, m leaseChange, all []leaseChange, pools map[string]*view) error {
	switch m.lease {
	case run.LeaseTake:
		waits, err := s.queue(ctx, m.pool(), 1)
		if err != nil {
			return err
		}
		if len(waits) > 0 {
			return &port.NoSlot{Pool: m.after().Pool}
		}
		return s.grant(ctx, l, m, pools)
	case run.LeaseGrant:
		l.leave(m)
		return s.grant(ctx, l, m, pools)
	case run.LeaseDequeue:
		l.leave(m)
	case run.LeaseEnqueue, run.LeaseRequeue:
		if err := s.register(ctx, m.Run.Tenant, m.after().Pool); err != nil {
			return err
		}
		if m.lease == run.LeaseEnqueue && m.after().QueueLimit > 0 {
			leaving := 0
			for _, other := range all {
				if (other.lease == run.LeaseDequeue || other.lease == run.LeaseGrant) && other.pool() == m.pool() {
					leaving++
				}
			}
			guard, err := s.limitQueue(ctx, m, leaving)
			if err != nil {
				return err
			}
			l.parts = append(l.parts, guard)
		}
		l.changeTurn(m, 1)
		l.parts = append(l.parts, &part{put: queueItem(m.pool(), m.after(), m.Run.ID)})
	}
	return nil
}

// leave removes the run from its queue.
func (l *leases) leave(m leaseChange) {
	was := m.slot(m.before.Run)
	l.changeTurn(m, -1)
	l.parts = append(l.parts, &part{key: queueKey(pkPool(m.Run.Tenant, was.Pool), was, m.Run.ID), remove: true})
}

// grant assigns a slot to the run: one that the same commit releases, or a free one.
func (s *Store) grant(ctx context.Context, l *leases, m leaseChange, pools map[string]*view) error {
	in, slot := m.pool(), m.after()
	if i := slices.IndexFunc(l.freed[in], func(held lease) bool { return held.number < slot.Limit }); i >= 0 {
		above, err := s.heldAbove(ctx, l, in, slot.Limit)
		if err != nil {
			return err
		}
		if !above { // as many runs hold a slot of the pool as before
			held := l.freed[in][i]
			l.freed[in] = slices.Delete(slices.Clone(l.freed[in]), i, i+1)
			l.acquireSlot(m, held.number, held.run)
			return nil
		}
	}
	if err := s.register(ctx, m.Run.Tenant, slot.Pool); err != nil {
		return err
	}
	if pools[in] == nil {
		v, err := s.view(ctx, in)
		if err != nil {
			return err
		}
		pools[in] = v
		// Apply the changes of this commit to the view of the pool.
		for _, held := range l.freed[in] {
			delete(v.held, held.number)
		}
		for other, at := range l.held {
			if at.in == in {
				v.held[at.number] = other.Run.ID
			}
		}
	}
	n, ok := pools[in].free(slot.Limit, s.random)
	if !ok {
		return &port.NoSlot{Pool: slot.Pool}
	}
	pools[in].held[n] = m.Run.ID
	was := ""
	for i, held := range l.freed[in] {
		if held.number == n {
			was = held.run
			l.freed[in] = append(l.freed[in][:i:i], l.freed[in][i+1:]...)
			break
		}
	}
	l.acquireSlot(m, n, was)
	return nil
}

// heldAbove reports whether a slot beyond the limit is held, or was at the start of the commit.
// It was granted under a higher limit. The grant then counts all slots.
func (s *Store) heldAbove(ctx context.Context, l *leases, in string, limit int) (bool, error) {
	for _, at := range l.held {
		if at.in == in && at.number >= limit {
			return true, nil
		}
	}
	query := s.queryRange(in, slotSort(limit), sortSlot+last)
	query.Limit = aws.Int32(1)
	above := false
	err := s.each(ctx, query, func(item) bool {
		above = true
		return false
	})
	return above, err
}

// acquireSlot adds the write with which the run acquires slot n. was is the present holder of the
// slot, "" for a free slot.
func (l *leases) acquireSlot(m leaseChange, n int, was string) {
	in := m.pool()
	put := slotKey(in, n)
	put[attrRun] = text(m.Run.ID)
	p := &part{put: put}
	if was == "" {
		p.absent(schema.Partition.Name)
	} else {
		p.heldBy(was)
	}
	l.parts = append(l.parts, p)
	l.held[slotOf{m.change, m.attribute}] = slotAt{in, n}
}

// heldBy adds the condition that the run with this id holds the slot, or that no run does.
func (p *part) heldBy(id string) {
	p.conditions = append(p.conditions, "(attribute_not_exists("+p.name(attrRun)+") OR "+p.name(attrRun)+" = "+p.value(text(id))+")")
}

// view has the held slots of a pool and their holders.
type view struct{ held map[int]string }

func (s *Store) view(ctx context.Context, in string) (*view, error) {
	v := &view{held: map[int]string{}}
	err := s.each(ctx, s.queryPrefix(in, sortSlot), func(is item) bool {
		if n, ok := slotNumber(textOf(is[schema.Sort.Name])); ok {
			v.held[n] = textOf(is[attrRun])
		}
		return true
	})
	return v, err
}

// free returns a random free slot below the limit, so that concurrent commits rarely choose the
// same one. The result is false if no slot can be granted.
//
// After a limit was lowered, slots above it remain held until their runs end, and they count.
// So only the lowest slots are granted: as many as the limit leaves after the slots that are
// held above them are subtracted. Concurrent commits therefore cannot exceed the limit
// together.
func (v *view) free(limit int, random func(n int) int) (int, bool) {
	above := 0
	for n := range v.held {
		if n >= limit {
			above++
		}
	}
	window := limit
	for window > 0 && window+above > limit {
		window--
		if _, held := v.held[window]; held {
			above++
		}
	}
	var open []int
	for n := range window {
		if _, held := v.held[n]; !held {
			open = append(open, n)
		}
	}
	if len(open) == 0 {
		return 0, false
	}
	return open[random(len(open))], true
}
