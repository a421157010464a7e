package dynamo

import (
	"context"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
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
	query := s.beside(in, sortQueue)
	query.Limit = aws.Int32(int32(min(limit, 1000)))
	err = s.each(ctx, query, func(is item) bool {
		waits = append(waits, is)
		return len(waits) < limit
	})
	return waits, err
}

// QueueLength implements port.Store: half a request unit for each forty queued
// runs.
func (s *Store) QueueLength(ctx context.Context, tenant, pool string, most int) (int, error) {
	query := s.beside(pkPool(tenant, pool), sortQueue)
	query.ConsistentRead = nil
	length, err := s.length(ctx, query, most)
	return length, wrap(err, "count the queue of pool", pool)
}

// length counts the items of a query, at most most.
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

// register makes the pool known to Pools before its first run. Each process
// writes it once.
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

// Pools implements port.Store. The list of pools is eventually consistent, the
// figures of each are strongly consistent.
func (s *Store) Pools(ctx context.Context) ([]port.PoolUse, error) {
	pools, err := s.poolUses(ctx)
	return pools, wrap(err, "read", "the pools")
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
		if use.Held, err = s.length(ctx, s.beside(in, sortSlot), math.MaxInt); err != nil {
			return nil, err
		}
		if use.Queued, err = s.length(ctx, s.beside(in, sortQueue), math.MaxInt); err != nil {
			return nil, err
		}
		if use.Held+use.Queued > 0 {
			pools = append(pools, use)
		}
	}
	return pools, nil
}
