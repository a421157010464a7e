package dynamo

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

func dueKey(kind, shard string) string { return kind + "#" + shard }

// dueBy is the query for the entries of a kind and shard that may be due.
func (s *Store) dueBy(kind, shard string, now int64) *dynamodb.QueryInput {
	q := s.indexQuery(schema.IndexDue, attrDue, dueKey(kind, shard))
	*q.KeyConditionExpression += " AND #at <= :at"
	q.ExpressionAttributeNames["#at"] = attrAt
	q.ExpressionAttributeValues[":at"] = number(now)
	return q
}

// due returns at most limit records of the kinds that are due, the longest due
// first. The index truncates times to grains, so all entries of one indexed
// time are read.
func (s *Store) due(ctx context.Context, now time.Time, limit int, when func(run.Run) time.Time, kinds ...string) ([]*record, error) {
	var queries []*dynamodb.QueryInput
	for _, kind := range kinds {
		for n := range dueShards {
			queries = append(queries, s.dueBy(kind, strconv.Itoa(n), now.Unix()))
		}
	}
	m := s.merge(func(a, b item) bool { return numberOf(a[attrAt]) < numberOf(b[attrAt]) }, queries)
	var found []*record
	for len(found) < limit {
		first, err := m.peek(ctx)
		if err != nil {
			return nil, err
		}
		if first == nil {
			break
		}
		grain, all := numberOf(first[attrAt]), int(^uint(0)>>1)
		entries, err := m.take(ctx, all, func(is item) bool { return numberOf(is[attrAt]) == grain })
		if err != nil {
			return nil, err
		}
		records, err := s.records(ctx, entries, false)
		if err != nil {
			return nil, err
		}
		records = slices.DeleteFunc(records, func(r *record) bool {
			at := when(r.Run)
			return at.IsZero() || at.After(now)
		})
		slices.SortStableFunc(records, func(a, b *record) int { return when(a.Run).Compare(when(b.Run)) })
		found = append(found, records...)
	}
	return found[:min(len(found), max(limit, 0))], nil
}

// Due implements port.Store. It may miss the newest commits.
func (s *Store) Due(ctx context.Context, now time.Time, limit int) ([]run.Ref, error) {
	records, err := s.due(ctx, now, limit, func(r run.Run) time.Time {
		if !s.there(r) {
			return time.Time{}
		}
		return r.Execution.ActBy
	}, dueAct, dueSettle)
	return refsOf(records), wrap(err, "read", "what is due")
}

// OutputsDue implements port.Store. It may miss the newest commits.
func (s *Store) OutputsDue(ctx context.Context, now time.Time, limit int) ([]run.Ref, error) {
	records, err := s.due(ctx, now, limit, func(r run.Run) time.Time {
		if !r.BytesLeft() || !s.there(r) {
			return time.Time{}
		}
		return r.BytesDue()
	}, dueOutput, dueSettle)
	return refsOf(records), wrap(err, "read", "the outputs that have expired")
}

func refsOf(records []*record) []run.Ref {
	refs := make([]run.Ref, len(records))
	for i, r := range records {
		refs[i] = r.Ref()
	}
	return refs
}

// WithMachine implements port.Store, ordered by partition key, which is by
// tenant and id. It may miss the newest commits.
func (s *Store) WithMachine(ctx context.Context, after run.Ref, limit int) ([]port.Placement, error) {
	placed, err := s.withMachine(ctx, after, limit)
	return placed, wrap(err, "read", "the runs with a machine")
}

func (s *Store) withMachine(ctx context.Context, after run.Ref, limit int) (placed []port.Placement, err error) {
	var queries []*dynamodb.QueryInput
	for n := range dueShards {
		q := s.indexQuery(schema.IndexMachines, attrMachine, strconv.Itoa(n))
		q.Limit = aws.Int32(int32(min(max(limit, 0)/dueShards+8, 1000)))
		if after != (run.Ref{}) {
			*q.KeyConditionExpression += " AND #pk > :pk"
			q.ExpressionAttributeNames["#pk"] = schema.Partition.Name
			q.ExpressionAttributeValues[":pk"] = text(pkRun(after))
		}
		queries = append(queries, q)
	}
	m := s.merge(func(a, b item) bool {
		return cmp.Less(textOf(a[schema.Partition.Name]), textOf(b[schema.Partition.Name]))
	}, queries)
	for len(placed) < limit {
		entries, err := m.take(ctx, limit-len(placed), always)
		if err != nil || len(entries) == 0 {
			return placed, err
		}
		records, err := s.records(ctx, entries, true)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if indexed(r.Run)[attrMachine] != nil {
				placed = append(placed, port.PlacementOf(r.Run))
			}
		}
	}
	return placed, nil
}

// Purge implements port.Store. It leaves records to the table's TTL for
// Config.TTLGrace. With an error it returns how many records it has deleted.
func (s *Store) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	records, err := s.due(ctx, now, limit, run.Run.PurgeAt, duePurge, dueSettle)
	if err != nil {
		return 0, wrap(err, "find", "expired runs")
	}
	forgotten := 0
	for _, r := range records {
		if r.is[schema.TTL] != nil && r.ExpiresAt.Add(s.config.TTLGrace).After(now) {
			continue
		}
		if err := s.forget(ctx, r); err != nil {
			return forgotten, wrap(err, "forget run", r.ID)
		}
		forgotten++
	}
	return forgotten, nil
}

// forget deletes the run's older events, then the record with its heartbeat item,
// unless another run has replaced it. That run's events come later in order.
func (s *Store) forget(ctx context.Context, r *record) error {
	p := &part{key: runKey(r.Ref()), remove: true}
	p.where(attrNonce, "=", r.is[attrNonce])
	parts := []*part{p}
	var events []item
	if err := s.each(ctx, s.under(pkRun(r.Ref())), func(is item) bool {
		switch sk := textOf(is[schema.Sort.Name]); {
		case sk == sortHeartbeat:
			parts = append(parts, &part{key: heartbeatKey(r.Ref()), remove: true})
		case strings.HasPrefix(sk, sortEvents) && sk < eventsPrefix(r.CreatedAt)+last:
			events = append(events, keyOf(pkRun(r.Ref()), sk))
		}
		return true
	}); err != nil {
		return err
	}
	for _, key := range events {
		if err := s.send(ctx, []*part{{key: key, remove: true}}); err != nil {
			return err
		}
	}
	if err := s.send(ctx, parts); refused(err) == nil {
		return err
	}
	return nil
}
