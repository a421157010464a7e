package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Load implements port.Store.
func (s *Store) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	r, err := s.load(ctx, ref, s.needed)
	return r, wrap(err, "read run", ref.ID)
}

// Find implements port.Store. A run's id needs one read, a task id that differs
// from it three.
func (s *Store) Find(ctx context.Context, tenant, id string) (run.Run, error) {
	r, err := s.load(ctx, run.Ref{Tenant: tenant, ID: id}, s.alive)
	if !errors.Is(err, port.ErrNotFound) {
		return r, wrap(err, "read task", id)
	}
	name, err := s.get(ctx, keyOf(pkTask(tenant, id), sortTask), true)
	if err == nil && name == nil {
		err = port.ErrNotFound
	}
	if err == nil {
		r, err = s.nameHolder(ctx, tenant, name)
	}
	if err != nil {
		return run.Run{}, wrap(err, "read task", id)
	}
	return r, nil
}

// FindByKey implements port.Store. It needs two reads.
func (s *Store) FindByKey(ctx context.Context, tenant string, key port.IdempotencyKey) (run.Run, error) {
	name, err := s.get(ctx, keyOf(pkKey(tenant, key.Key), sortKey), true)
	if err == nil && name == nil {
		err = port.ErrNotFound
	}
	var r run.Run
	if err == nil {
		r, err = s.nameHolder(ctx, tenant, name)
	}
	if err == nil && textOf(name[attrDigest]) != key.Digest {
		err = port.ErrKeyTaken
	}
	if err != nil {
		return run.Run{}, wrap(err, "read the run of", "an idempotency key")
	}
	return r, nil
}

func (s *Store) load(ctx context.Context, ref run.Ref, found func(run.Run) bool) (run.Run, error) {
	is, err := s.get(ctx, runKey(ref), true)
	if err != nil {
		return run.Run{}, err
	}
	if is == nil {
		return run.Run{}, port.ErrNotFound
	}
	r, err := s.recordOf(is)
	if err != nil {
		return run.Run{}, err
	}
	if !found(r.Run) {
		return run.Run{}, port.ErrNotFound
	}
	return r.Run, nil
}

// Events implements port.Store. A run that is not found has no events. The
// record is read first, so that its older events exist when they are read.
func (s *Store) Events(ctx context.Context, ref run.Ref, after, limit int) ([]run.Event, error) {
	events, err := s.events(ctx, ref, after, limit)
	return events, wrap(err, "read the events of run", ref.ID)
}

func (s *Store) events(ctx context.Context, ref run.Ref, after, limit int) ([]run.Event, error) {
	is, err := s.get(ctx, runKey(ref), true)
	if err != nil || is == nil || limit <= 0 {
		return nil, err
	}
	r, err := s.recordOf(is)
	if err != nil || !s.alive(r.Run) {
		return nil, err
	}
	newest, err := eventsOf(is)
	if err != nil {
		return nil, err
	}
	var events []run.Event
	take := func(some []run.Event) {
		for _, e := range some {
			if e.Seq > after && len(events) < limit {
				events = append(events, e)
				after = e.Seq
			}
		}
	}
	if is[attrSpilled] != nil && (len(newest) == 0 || after+1 < newest[0].Seq) {
		prefix := eventsPrefix(r.CreatedAt)
		older := s.queryRange(pkRun(ref), eventsSort(prefix, max(after, 0)+1), prefix+last)
		var bad error
		if err := s.each(ctx, older, func(is item) bool {
			some, err := eventsOf(is)
			bad = err
			take(some)
			return err == nil && len(events) < limit
		}); err != nil || bad != nil {
			return nil, errors.Join(err, bad)
		}
	}
	take(newest)
	return events, nil
}

// eventsOf returns the events in an item.
func eventsOf(is item) ([]run.Event, error) {
	packed := listOf(is[attrEvents])
	events := make([]run.Event, len(packed))
	for i, p := range packed {
		var err error
		if events[i], err = format.UnpackEvent(p); err != nil {
			return nil, fmt.Errorf("an event: %w", fault.Wrap(err, fault.Internal, "unreadable stored event"))
		}
	}
	return events, nil
}

// get returns an item, or nil if it does not exist. A consistent read sees every write that
// returned before, for twice the price.
func (s *Store) get(ctx context.Context, key item, consistent bool) (item, error) {
	out, err := call(ctx, s, s.api.GetItem, &dynamodb.GetItemInput{
		TableName: &s.config.Table, Key: key, ConsistentRead: &consistent, ReturnConsumedCapacity: s.returnConsumed(),
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// queryPartition returns the strongly consistent query for the items of a partition key.
func (s *Store) queryPartition(pk string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &s.config.Table, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: s.returnConsumed(),
		KeyConditionExpression:    aws.String("#pk = :pk"),
		ExpressionAttributeNames:  map[string]string{"#pk": schema.Partition.Name},
		ExpressionAttributeValues: item{":pk": text(pk)},
	}
}

// queryRange is like queryPartition, but only for the sort keys between from and to, inclusive.
func (s *Store) queryRange(pk, from, to string) *dynamodb.QueryInput {
	q := s.queryPartition(pk)
	*q.KeyConditionExpression += " AND #sk BETWEEN :from AND :to"
	q.ExpressionAttributeNames["#sk"] = schema.Sort.Name
	q.ExpressionAttributeValues[":from"], q.ExpressionAttributeValues[":to"] = text(from), text(to)
	return q
}

// queryPrefix is like queryPartition, but only for the sort keys with the prefix.
func (s *Store) queryPrefix(pk, prefix string) *dynamodb.QueryInput {
	return s.queryRange(pk, prefix, prefix+last)
}

// last is greater than every character of a sort key.
const last = "\U0010ffff"

// each calls the function for the items of a query until it returns false.
func (s *Store) each(ctx context.Context, query *dynamodb.QueryInput, do func(item) bool) error {
	for {
		out, err := call(ctx, s, s.api.Query, query)
		if err != nil {
			return err
		}
		for _, is := range out.Items {
			if !do(is) {
				return nil
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			return nil
		}
		query.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// batch is the number of items that one BatchGetItem reads.
const batch = 100

// readers is the number of concurrent BatchGetItem calls.
const readers = 8

// recordFields are the attributes that the method records reads. It does not read the events,
// which are most of an item.
var recordFields = []string{schema.Partition.Name, attrDoc, attrNonce, schema.TTL}

// records reads the runs of index entries in their order, without those that no
// longer exist. A record that cannot be decoded has damaged set.
func (s *Store) records(ctx context.Context, entries []item, consistent bool) ([]*record, error) {
	known := make(map[string]int, len(entries))
	var keys []item
	for _, e := range entries {
		pk := textOf(e[schema.Partition.Name])
		if _, twice := known[pk]; !twice { // a moving entry may be read at its old and its new place
			known[pk] = len(keys)
			keys = append(keys, keyOf(pk, textOf(e[schema.Sort.Name])))
		}
	}
	records := make([]*record, len(keys))
	all := s.group(readers)
	for part := range slices.Chunk(keys, batch) {
		all.Go(func() error {
			return s.fetch(ctx, part, consistent, recordFields, func(is item) error {
				r, err := s.recordOf(is)
				if err != nil {
					r = &record{is: is, damaged: err}
					r.Tenant, r.ID = named(textOf(is[schema.Partition.Name]))
				}
				records[known[textOf(is[schema.Partition.Name])]] = r
				return nil
			})
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(records, func(r *record) bool { return r == nil }), nil
}

// fetch reads the fields of at most batch items by their keys. Without fields it reads whole
// items. It requests keys that DynamoDB leaves unprocessed again: at once if some items were
// returned, otherwise after a growing pause, because the table is throttled.
func (s *Store) fetch(ctx context.Context, keys []item, consistent bool, fields []string, do func(item) error) error {
	request := types.KeysAndAttributes{Keys: keys, ConsistentRead: &consistent}
	if len(fields) > 0 {
		names := make([]string, len(fields))
		request.ExpressionAttributeNames = make(map[string]string, len(fields))
		for i, field := range fields {
			names[i] = "#" + field
			request.ExpressionAttributeNames[names[i]] = field
		}
		request.ProjectionExpression = aws.String(strings.Join(names, ", "))
	}
	want := map[string]types.KeysAndAttributes{s.config.Table: request}
	for n := 0; len(keys) > 0 && len(want) > 0; {
		out, err := call(ctx, s, s.api.BatchGetItem, &dynamodb.BatchGetItemInput{
			RequestItems: maps.Clone(want), ReturnConsumedCapacity: s.returnConsumed(),
		})
		if err != nil {
			return err
		}
		read := 0
		for _, items := range out.Responses {
			read += len(items)
			for _, is := range items {
				if err := do(is); err != nil {
					return err
				}
			}
		}
		want = out.UnprocessedKeys
		switch {
		case len(want) == 0:
		case read > 0:
			n = 0
		default:
			if err := s.pause(ctx, s.jitter(pauses.Delay(n))); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}
