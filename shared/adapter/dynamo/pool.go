package dynamo

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Line implements orchestrator.Store.
func (s *Store) Queue(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	waits, err := s.queue(ctx, pkPool(tenant, pool), limit)
	refs := make([]run.Ref, 0, len(waits))
	for _, is := range waits {
		if id, ok := enqueued(textOf(is[schema.Sort.Name])); ok {
			refs = append(refs, run.Ref{Tenant: tenant, ID: id})
		}
	}
	return refs, told(err, "read the line of pool", pool)
}

func (s *Store) queue(ctx context.Context, in string, limit int) (waits []item, err error) {
	if limit <= 0 {
		return nil, nil
	}
	query := s.beside(in, sortQueue)
	query.Limit = aws.Int32(int32(min(limit, 1000)))
	err = s.each(ctx, query, func(is item) bool {
		waits = append(waits, is)
		return len(waits) < limit
	})
	return waits, err
}

// Position implements orchestrator.Store. It reads all who stand before: one
// request unit for each forty of them or so.
func (s *Store) Position(ctx context.Context, r run.Run) (before int, err error) {
	before, err = s.position(ctx, r)
	return before, told(err, "find the place in its line of run", r.ID)
}

func (s *Store) position(ctx context.Context, r run.Run) (int, error) {
	if r.PoolState() != run.SlotQueued {
		return 0, port.ErrNotFound
	}
	in := pkPool(r.Tenant, r.Slot.Pool)
	place, err := s.get(ctx, queueKey(in, r), true)
	if err != nil {
		return 0, err
	}
	if place == nil {
		return 0, port.ErrNotFound
	}
	query := s.between(in, sortQueue, queueSort(r))
	query.Select = types.SelectCount
	count := 0
	for {
		out, err := call(ctx, s, s.api.Query, query)
		if err != nil {
			return 0, err
		}
		count += int(out.Count)
		if len(out.LastEvaluatedKey) == 0 {
			return max(count-1, 0), nil
		}
		query.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// register has Pools know of the pool, before the first run stands to it. Each
// process asks once.
func (s *Store) register(ctx context.Context, tenant, pool string) error {
	in := pkPool(tenant, pool)
	if _, known := s.pools.Load(in); known {
		return nil
	}
	key := keyOf(in, sortPool)
	is, err := s.get(ctx, key, false)
	if err != nil {
		return err
	}
	if is == nil {
		key[attrDue], key[attrAt] = text(dueKey(duePool, "0")), number(0)
		_, err := call(ctx, s, s.api.PutItem, &dynamodb.PutItemInput{
			TableName: &s.config.Table, Item: key, ReturnConsumedCapacity: s.wanted(),
		})
		if err != nil {
			return err
		}
	}
	s.pools.Store(in, true)
	return nil
}

// Pools implements orchestrator.Store. A pool that was never used before may
// take a moment to be told; what it tells of each is as it is now.
func (s *Store) Pools(ctx context.Context) ([]port.PoolUse, error) {
	pools, err := s.poolUses(ctx)
	return pools, told(err, "read", "the pools")
}

func (s *Store) poolUses(ctx context.Context) (pools []port.PoolUse, err error) {
	var registered []string
	if err := s.each(ctx, s.dueBy(duePool, "0", 0), func(is item) bool {
		registered = append(registered, textOf(is[schema.Partition.Name]))
		return true
	}); err != nil {
		return nil, err
	}
	slices.Sort(registered)
	for _, in := range registered {
		use := port.PoolUse{}
		use.Tenant, use.Pool = named(in)
		if err := s.each(ctx, s.under(in), func(is item) bool {
			switch sk := textOf(is[schema.Sort.Name]); {
			case strings.HasPrefix(sk, sortSlot):
				use.Held++
			case strings.HasPrefix(sk, sortQueue):
				use.Queued++
			}
			return true
		}); err != nil {
			return nil, err
		}
		if use.Held+use.Queued > 0 {
			pools = append(pools, use)
		}
	}
	return pools, nil
}
