package dynamo

import (
	"context"
	"maps"
	"slices"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// leases are the changes of a commit to the pools of its runs.
type leases struct {
	parts []*part
	// slots are the numbers of the slots that runs hold after the commit.
	slots map[*change]int
	// left are the runs that hold no slot after the commit.
	left map[*change]bool
	// freed are the slots of each pool that the commit releases and has not
	// granted, with their holders.
	freed map[string][]lease
}

// lease is a held slot.
type lease struct {
	number int
	run    string
}

// note stores the slot's number beside the record, which finds the slot when it
// is released.
func (l *leases) note(c *change, p *part) {
	if n, ok := l.slots[c]; ok {
		p.set(attrSlot, number(int64(n)))
	} else if l.left[c] {
		p.drop(attrSlot)
		p.sameSlot(c.before.is)
	}
}

// sameSlot adds the condition that the record still has the slot's number as it was
// read: Reconcile changes it without raising the version.
func (p *part) sameSlot(read item) {
	if number, ok := read[attrSlot]; ok {
		p.where(attrSlot, "=", number)
	} else {
		p.absent(attrSlot)
	}
}

// leases plans the changes to slots and queues. It returns ErrNoSlot if a run
// cannot have a slot. A slot released and granted in one commit is written
// once.
func (s *Store) leases(ctx context.Context, changes []*change) (*leases, error) {
	l := &leases{slots: map[*change]int{}, left: map[*change]bool{}, freed: map[string][]lease{}}
	if err := s.lookAt(ctx, slices.DeleteFunc(slices.Clone(changes), func(c *change) bool {
		return c.Lease != run.LeaseGrant && c.Lease != run.LeaseDequeue && c.Lease != run.LeaseRelease && c.Lease != run.LeaseRequeue
	})); err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.Lease != run.LeaseRelease && c.Lease != run.LeaseRequeue {
			continue
		}
		l.left[c] = true
		if n, ok := c.before.slot(); ok {
			in := pkPool(c.Run.Tenant, c.before.Slot.Pool)
			l.freed[in] = append(l.freed[in], lease{n, c.Run.ID})
		}
	}
	pools := map[string]*view{}
	for _, c := range changes {
		var err error
		in := pkPool(c.Run.Tenant, c.Run.Slot.Pool)
		switch c.Lease {
		case run.LeaseTake:
			var waits []item
			if waits, err = s.queue(ctx, in, 1); err == nil && len(waits) > 0 {
				return nil, port.ErrNoSlot
			}
			if err == nil {
				err = s.grant(ctx, l, c, in, pools)
			}
		case run.LeaseGrant:
			l.leave(c)
			err = s.grant(ctx, l, c, in, pools)
		case run.LeaseDequeue:
			l.leave(c)
		case run.LeaseEnqueue, run.LeaseRequeue:
			if err = s.register(ctx, c.Run.Tenant, c.Run.Slot.Pool); err == nil {
				l.parts = append(l.parts, &part{put: queueKey(in, c.Run)})
			}
		}
		if err != nil {
			return nil, err
		}
	}
	for _, in := range slices.Sorted(maps.Keys(l.freed)) {
		for _, held := range l.freed[in] {
			p := &part{key: slotKey(in, held.number), remove: true}
			p.heldBy(held.run)
			l.parts = append(l.parts, p)
		}
	}
	return l, nil
}

// leave removes the run from its queue.
func (l *leases) leave(c *change) {
	was := c.before
	l.parts = append(l.parts, &part{key: queueKey(pkPool(was.Tenant, was.Slot.Pool), was.Run), remove: true})
}

// grant finds a slot for the run: one that the same commit releases, or a free
// one.
func (s *Store) grant(ctx context.Context, l *leases, c *change, in string, pools map[string]*view) error {
	limit := c.Run.Slot.Limit
	for i, held := range l.freed[in] {
		if held.number < limit {
			l.freed[in] = append(l.freed[in][:i:i], l.freed[in][i+1:]...)
			l.hold(c, in, held.number, held.run)
			return nil
		}
	}
	if err := s.register(ctx, c.Run.Tenant, c.Run.Slot.Pool); err != nil {
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
		for other, n := range l.slots {
			if pkPool(other.Run.Tenant, other.Run.Slot.Pool) == in {
				v.held[n] = other.Run.ID
			}
		}
	}
	n, ok := pools[in].free(limit, s.random)
	if !ok {
		return port.ErrNoSlot
	}
	pools[in].held[n] = c.Run.ID
	was := ""
	for i, held := range l.freed[in] {
		if held.number == n {
			was = held.run
			l.freed[in] = append(l.freed[in][:i:i], l.freed[in][i+1:]...)
			break
		}
	}
	l.hold(c, in, n, was)
	return nil
}

// hold gives the slot to the run, from its present holder; "" for a free slot.
func (l *leases) hold(c *change, in string, n int, was string) {
	put := slotKey(in, n)
	put[attrRun] = text(c.Run.ID)
	p := &part{put: put}
	if was == "" {
		p.absent(schema.Partition.Name)
	} else {
		p.heldBy(was)
	}
	l.parts = append(l.parts, p)
	l.slots[c] = n
}

// heldBy sets the holder of the slot, "" for a free slot.
func (p *part) heldBy(id string) {
	p.conditions = append(p.conditions, "(attribute_not_exists("+p.name(attrRun)+") OR "+p.name(attrRun)+" = "+p.value(text(id))+")")
}

// view is the state of the slots of a pool.
type view struct{ held map[int]string }

func (s *Store) view(ctx context.Context, in string) (*view, error) {
	v := &view{held: map[int]string{}}
	err := s.each(ctx, s.beside(in, sortSlot), func(is item) bool {
		if n, ok := slotNumber(textOf(is[schema.Sort.Name])); ok {
			v.held[n] = textOf(is[attrRun])
		}
		return true
	})
	return v, err
}

// free chooses a random slot below the limit, so that concurrent commits rarely
// choose the same one.
//
// If a limit was lowered, slots above it stay held until their runs end, and
// they count. So only the lowest slots are granted: as many as would remain if
// each of them were held beside all that are held above. Concurrent commits
// therefore cannot exceed the limit together.
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
