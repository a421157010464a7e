package dynamo

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// The item of the turns of a key in the queue of a pool. The item without a turn belongs to a
// queue with a limit. Each run that joins changes it.
const (
	attrLast   = "last" // the round of the run that joined last, or the number of joins
	attrQueued = "n"    // the number of queued runs of the key
	attrTurn   = "turn" // in the item of a queued run: its turn
	// turnLife is how long an unused item of turns is kept, longer than a run is queued.
	turnLife = 90 * 24 * time.Hour
)

func turnKey(in, turn string) item { return keyOf(in, sortTurn+turn) }

// turn is the change of a key's turns in a commit. Several runs of the key in a commit change
// one item.
type turn struct {
	key    item
	by     int
	joins  *platform.Slot // the slot that joins, or nil
	joined run.Ref
	last   int64
}

// changeTurn records a run that joins or leaves the queue of its pool. A run without a round,
// whose start the platform has refused, joins without a turn.
func (l *leases) changeTurn(m leaseChange, by int) {
	slot := m.after()
	if by < 0 {
		slot = m.slot(m.before.Run)
	}
	if m.attribute != attrSlot || slot.Turn() == "" {
		return
	}
	id := m.pool() + "\n" + slot.Turn()
	t := l.turns[id]
	if t == nil {
		t = &turn{key: turnKey(m.pool(), slot.Turn())}
		l.turns[id] = t
	}
	t.by += by
	if by > 0 {
		t.last = max(t.last, slot.Round)
	}
	if m.lease == run.LeaseEnqueue && slot.Round > 0 {
		t.joins, t.joined = &slot, m.Run.Ref()
	}
}

// turnParts returns the parts that write the turns.
func (l *leases) turnParts(now time.Time) (parts []*part) {
	for _, id := range slices.Sorted(maps.Keys(l.turns)) {
		t := l.turns[id]
		p := &part{key: t.key}
		if t.by != 0 {
			p.sets = append(p.sets, p.name(attrQueued)+" = if_not_exists("+p.name(attrQueued)+", "+p.value(number(int64(max(-t.by, 0))))+") + "+p.value(number(int64(t.by))))
		}
		if t.last > 0 {
			p.set(schema.TTL, number(now.Add(turnLife).Unix()))
		}
		switch {
		case t.joins != nil:
			p.set(attrLast, number(t.last))
			if t.joins.Behind == 0 {
				p.absent(attrLast)
			} else {
				p.where(attrLast, "=", number(t.joins.Behind))
			}
			p.refused = func(context.Context, item) error { return &port.Conflict{Ref: t.joined} }
		case t.last > 0:
			p.sets = append(p.sets, p.name(attrLast)+" = if_not_exists("+p.name(attrLast)+", "+p.value(number(t.last))+")")
		}
		if len(p.sets) > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// QueueState implements port.Store. It takes 2 RRU, and 1 more for a slot with a key.
func (s *Store) QueueState(ctx context.Context, tenant string, slot platform.Slot) (l platform.QueueState, err error) {
	in := pkPool(tenant, slot.Pool)
	for _, end := range []struct {
		round   *int64
		forward bool
	}{{&l.Head, true}, {&l.Tail, false}} {
		query := s.queryPrefix(in, sortQueue+slot.Rank())
		query.Limit, query.ScanIndexForward = aws.Int32(1), aws.Bool(end.forward)
		if err := s.each(ctx, query, func(is item) bool {
			*end.round = platform.RoundOf(textOf(is[schema.Sort.Name])[len(sortQueue):])
			return false
		}); err != nil {
			return l, wrap(err, "read the queue of pool", slot.Pool)
		}
		if l.Head == 0 {
			break
		}
	}
	if slot.Turn() == "" {
		return l, nil
	}
	is, err := s.get(ctx, turnKey(in, slot.Turn()), true)
	l.Last, l.Queued = numberOf(is[attrLast]), int(max(numberOf(is[attrQueued]), 0))
	return l, wrap(err, "read the turns in pool", slot.Pool)
}

// limitQueue plans the join of a queue with a limit. It counts the queue and returns a part
// whose condition is that no other run has joined since. leaving is the number of runs that
// leave the queue in the same commit.
func (s *Store) limitQueue(ctx context.Context, m leaseChange, leaving int) (*part, error) {
	guard, err := s.get(ctx, turnKey(m.pool(), ""), true)
	if err != nil {
		return nil, err
	}
	slot := m.after()
	waits, err := s.queue(ctx, m.pool(), slot.QueueLimit+leaving)
	if err != nil {
		return nil, err
	}
	if len(waits)-leaving >= slot.QueueLimit {
		return nil, &port.NoSlot{Pool: slot.Pool}
	}
	p := &part{key: turnKey(m.pool(), "")}
	p.set(attrLast, number(numberOf(guard[attrLast])+1))
	p.set(schema.TTL, number(s.now().Add(turnLife).Unix()))
	if guard == nil {
		p.absent(attrLast)
	} else {
		p.where(attrLast, "=", guard[attrLast])
	}
	return p, nil
}

// reconcileTurns corrects the numbers of queued runs in the turns of a pool. It reads the turns
// before the queue. If a run joins or leaves meanwhile, the item has changed, and the next call
// corrects it.
func (s *Store) reconcileTurns(ctx context.Context, in string) (changed int, err error) {
	turns := map[string]item{}
	if err := s.each(ctx, s.queryPrefix(in, sortTurn), func(is item) bool {
		if name := textOf(is[schema.Sort.Name])[len(sortTurn):]; name != "" && numberOf(is[attrQueued]) != 0 {
			turns[name] = is
		}
		return true
	}); err != nil || len(turns) == 0 {
		return 0, err
	}
	counts := map[string]int64{}
	if err := s.each(ctx, s.queryPrefix(in, sortQueue), func(is item) bool {
		counts[textOf(is[attrTurn])]++
		return true
	}); err != nil {
		return 0, err
	}
	for name, is := range turns {
		if numberOf(is[attrQueued]) == counts[name] {
			continue
		}
		p := &part{key: turnKey(in, name)}
		p.set(attrQueued, number(counts[name]))
		p.where(attrQueued, "=", is[attrQueued])
		p.where(attrLast, "=", is[attrLast])
		switch err := s.write(ctx, []*part{p}); {
		case err == nil:
			changed++
		case !errors.Is(err, errAgain):
			return changed, err
		}
	}
	return changed, nil
}
