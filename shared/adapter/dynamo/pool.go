package dynamo

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Queue implements port.Store.
func (s *Store) Queue(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	waits, err := s.queue(ctx, pkPool(tenant, pool), limit)
	refs := make([]run.Ref, 0, len(waits))
	for _, is := range waits {
		if id, ok := enqueued(textOf(is[schema.Sort.Name])); ok {
			refs = append(refs, run.Ref{Tenant: tenant, ID: id})
		}
	}
	return refs, wrap(err, "read the queue of pool", pool)
}

func (s *Store) queue(ctx context.Context, in string, limit int) (waits []item, err error) {
	if limit <= 0 {
		return nil, nil
	}
	query := s.queryPrefix(in, sortQueue)
	query.Limit = aws.Int32(int32(min(limit, 1000)))
	err = s.each(ctx, query, func(is item) bool {
		waits = append(waits, is)
		return len(waits) < limit
	})
	return waits, err
}

// Holders implements port.Store.
func (s *Store) Holders(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	var refs []run.Ref
	if limit <= 0 {
		return nil, nil
	}
	query := s.queryPrefix(pkPool(tenant, pool), sortSlot)
	query.Limit = aws.Int32(int32(min(limit, 1000)))
	err := s.each(ctx, query, func(is item) bool {
		refs = append(refs, run.Ref{Tenant: tenant, ID: textOf(is[attrRun])})
		return len(refs) < limit
	})
	return refs, wrap(err, "read the slots of pool", pool)
}

// QueueLength implements port.Store. It takes half a read unit for each forty queued runs.
func (s *Store) QueueLength(ctx context.Context, tenant, pool string, most int) (int, error) {
	query := s.queryPrefix(pkPool(tenant, pool), sortQueue)
	query.ConsistentRead = nil
	length, err := s.length(ctx, query, most)
	return length, wrap(err, "count the queue of pool", pool)
}

// QueueAhead implements port.Store, at the cost of QueueLength.
func (s *Store) QueueAhead(ctx context.Context, tenant string, slot platform.Slot, most int) (int, error) {
	query := s.queryRange(pkPool(tenant, slot.Pool), sortQueue, sortQueue+slot.Order())
	query.ConsistentRead = nil
	ahead, err := s.length(ctx, query, most)
	return ahead, wrap(err, "count the queue of pool", slot.Pool)
}

// length counts the items of a query, up to most.
func (s *Store) length(ctx context.Context, query *dynamodb.QueryInput, most int) (length int, err error) {
	query.Select = types.SelectCount
	for length < most {
		query.Limit = aws.Int32(int32(min(most-length, math.MaxInt32))) //nolint:gosec // G115: at most MaxInt32
		out, err := call(ctx, s, s.api.Query, query)
		if err != nil {
			return 0, err
		}
		length += int(out.Count)
		if query.ExclusiveStartKey = out.LastEvaluatedKey; len(query.ExclusiveStartKey) == 0 {
			break
		}
	}
	return length, nil
}

// The item of a pool registers it for Pools. Pools removes the registration of a pool that is
// unused for poolUnused: each job has its own pool, and most are unused most of the time. A
// process relies on a registration until poolKnown after it was written, and renews it from
// poolRenewed on. The difference of poolUnused and poolKnown is longer than a commit takes and
// clocks differ.
const (
	poolRenewed = time.Hour
	poolKnown   = 2 * time.Hour
	poolUnused  = 3 * time.Hour
	// attrSeen is the time of the pool's last registration.
	attrSeen = "seen"
)

// register makes the pool known to Pools before its first run. Each process reads the
// registration every one or two hours, and one of them writes it.
func (s *Store) register(ctx context.Context, tenant, pool string) error {
	in := pkPool(tenant, pool)
	now := s.now()
	if until, known := s.pools.Load(in); known && now.Before(until.(time.Time)) { //nolint:forcetypeassert // nothing else is stored
		return nil
	}
	is, err := s.get(ctx, keyOf(in, sortPool), false)
	if err != nil {
		return err
	}
	seen := timeOf(is[attrSeen])
	if now.Sub(seen) >= poolRenewed {
		if err := s.send(ctx, []*part{{put: poolItem(in, now)}}); err != nil {
			return err
		}
		seen = now
	}
	s.pools.Store(in, seen.Add(poolKnown))
	return nil
}

func poolItem(in string, seen time.Time) item {
	is := keyOf(in, sortPool)
	is[attrDue], is[attrAt], is[attrSeen] = text(dueKey(duePool, "0")), number(0), moment(seen)
	return is
}

// Pools implements port.Store. The list of pools is eventually consistent, the
// figures of each are strongly consistent.
func (s *Store) Pools(ctx context.Context) ([]port.PoolUse, error) {
	pools, err := s.poolUses(ctx)
	return pools, wrap(err, "read", "the pools")
}

func (s *Store) poolUses(ctx context.Context) ([]port.PoolUse, error) {
	var registered []string
	if err := s.each(ctx, s.dueBy(duePool, "0", 0), func(is item) bool {
		registered = append(registered, textOf(is[schema.Partition.Name]))
		return true
	}); err != nil {
		return nil, err
	}
	slices.Sort(registered)
	uses := make([]port.PoolUse, len(registered))
	all := s.group(poolReaders)
	for i, in := range registered {
		all.Go(func() (err error) {
			if uses[i], err = s.poolUse(ctx, in); err == nil && unused(uses[i]) {
				err = s.unregister(ctx, in)
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(uses, unused), nil
}

// poolReaders is the number of pools that Pools reads concurrently.
const poolReaders = 16

func unused(p port.PoolUse) bool { return p.Held+p.Queued == 0 }

// poolUse counts the pool's slots and its queue.
func (s *Store) poolUse(ctx context.Context, in string) (use port.PoolUse, err error) {
	use.Tenant, use.Pool = named(in)
	err = s.usages(ctx, in, func(_, sk string, _ int) {
		if sk == "" {
			use.Held++
		} else {
			use.Queued++
		}
	})
	return use, err
}

// unregister removes the registration of an unused pool that no process relies on.
func (s *Store) unregister(ctx context.Context, in string) error {
	is, err := s.get(ctx, keyOf(in, sortPool), false)
	if err != nil || is == nil {
		return err
	}
	now := s.now()
	p := &part{key: keyOf(in, sortPool), remove: true}
	if is[attrSeen] == nil { // written by a version that relied on it until its process ended
		p = &part{put: poolItem(in, now)}
		p.absent(attrSeen)
	} else if p.where(attrSeen, "=", is[attrSeen]); now.Sub(timeOf(is[attrSeen])) < poolUnused {
		return nil
	}
	if err := s.write(ctx, []*part{p}); err != nil && !errors.Is(err, errAgain) {
		return err
	}
	return nil
}
