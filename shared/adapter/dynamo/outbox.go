package dynamo

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ port.Outbox = (*Store)(nil)

// The items of changes that were set aside have no tenant.
const (
	outboxPrefix = "#outbox#"
	sortAside    = "aside"
	dueAside     = "aside" // one shard
	attrRecord   = "record"
)

func outboxKey(id string) item { return keyOf(outboxPrefix+id, sortAside) }

// SetAside implements port.Outbox.
func (s *Store) SetAside(ctx context.Context, c port.StoredChange) error {
	put := outboxKey(c.ID)
	put[attrRecord] = text(string(c.Record))
	put[attrDue], put[attrAt] = text(dueKey(dueAside, "0")), number(c.At.Unix())
	return wrap(s.send(ctx, []*part{{put: put}}), "set aside change", c.ID)
}

// Stored implements port.Outbox. It reads the list from an index, the changes from
// the table.
func (s *Store) Stored(ctx context.Context, after string, limit int) ([]port.StoredChange, string, error) {
	changes, next, err := s.stored(ctx, after, limit)
	return changes, next, wrap(err, "read", "the changes that were set aside")
}

func (s *Store) stored(ctx context.Context, after string, limit int) (changes []port.StoredChange, next string, err error) {
	query := s.indexQuery(schema.IndexDue, attrDue, dueKey(dueAside, "0"))
	query.Limit = aws.Int32(int32(min(max(limit, 1), batch))) //nolint:gosec // at most a hundred
	if after != "" {
		var from place
		if err := json.Unmarshal([]byte(after), &from); err != nil {
			return nil, "", fault.Wrap(err, fault.Internal, "malformed place in the outbox")
		}
		query.ExclusiveStartKey = keyOf(from.PK, sortAside)
		query.ExclusiveStartKey[attrDue], query.ExclusiveStartKey[attrAt] = text(dueKey(dueAside, "0")), number(from.At)
	}
	out, err := call(ctx, s, s.api.Query, query)
	if err != nil {
		return nil, "", err
	}
	var keys []item
	for _, e := range out.Items {
		keys = append(keys, keyOf(textOf(e[schema.Partition.Name]), sortAside))
	}
	err = s.fetch(ctx, keys, true, nil, func(is item) error {
		changes = append(changes, port.StoredChange{
			ID: textOf(is[schema.Partition.Name])[len(outboxPrefix):], At: time.Unix(numberOf(is[attrAt]), 0).UTC(),
			Record: []byte(textOf(is[attrRecord])),
		})
		return nil
	})
	slices.SortFunc(changes, func(a, b port.StoredChange) int { return a.At.Compare(b.At) })
	if err == nil && len(out.LastEvaluatedKey) > 0 {
		last := out.Items[len(out.Items)-1]
		text, err := json.Marshal(place{numberOf(last[attrAt]), textOf(last[schema.Partition.Name])})
		return changes, string(text), err
	}
	return changes, "", err
}

// Published implements port.Outbox.
func (s *Store) Published(ctx context.Context, ids ...string) error {
	all := s.group(readers)
	for _, id := range ids {
		all.Go(func() error {
			return wrap(s.send(ctx, []*part{{key: outboxKey(id), remove: true}}), "remove change", id)
		})
	}
	return all.Wait()
}
