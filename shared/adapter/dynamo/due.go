package dynamo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func dueKey(kind, shard string) string { return kind + "#" + shard }

// dueBy returns the query for the entries of a kind and shard that may be due.
func (s *Store) dueBy(kind, shard string, now int64) *dynamodb.QueryInput {
	q := s.indexQuery(schema.IndexDue, attrDue, dueKey(kind, shard))
	*q.KeyConditionExpression += " AND #at <= :at"
	q.ExpressionAttributeNames["#at"] = attrAt
	q.ExpressionAttributeValues[":at"] = number(now)
	return q
}

// due returns one page of the records of the kinds that are due. It reads at most limit entries
// of the index, in the order of their times, starting after the place after. It omits records
// that are not due yet, so a page may be empty. next is the place of the following page, empty
// at the end.
func (s *Store) due(
	ctx context.Context, now time.Time, after string, limit int, when func(run.Run) time.Time, kinds ...string,
) (found []*record, next string, err error) {
	entries, next, err := s.dueEntries(ctx, now, after, limit, sortRun, dueShards, kinds...)
	if err != nil {
		return nil, "", err
	}
	records, err := s.records(ctx, entries, false)
	if err != nil {
		return nil, "", err
	}
	for _, r := range records {
		at := when(r.Run)
		if r.damaged != nil || !at.IsZero() && !at.After(now) {
			found = append(found, r)
		}
	}
	slices.SortStableFunc(found, func(a, b *record) int { return when(a.Run).Compare(when(b.Run)) })
	return found, next, nil
}

// dueEntries returns one page of the index entries of the kinds that are due, in the order of
// their times in the index. sk is the sort key of their items. shards is the number of
// partition keys of each kind.
func (s *Store) dueEntries(
	ctx context.Context, now time.Time, after string, limit int, sk string, shards int, kinds ...string,
) (entries []item, next string, err error) {
	places, err := placesOf(after)
	if err != nil || limit <= 0 {
		return nil, "", err
	}
	var queries []*dynamodb.QueryInput
	wanted := map[string]bool{}
	for _, kind := range kinds {
		for n := range shards {
			key := dueKey(kind, strconv.Itoa(n))
			wanted[key] = true
			q := s.dueBy(kind, strconv.Itoa(n), now.Unix())
			q.Limit = aws.Int32(int32(min(limit/shards+8, 1000))) //nolint:gosec // G115: at most 1000
			if at, ok := places[key]; ok {
				q.ExclusiveStartKey = at.start(key, sk)
			}
			queries = append(queries, q)
		}
	}
	before := func(a, b item) bool { return numberOf(a[attrAt]) < numberOf(b[attrAt]) }
	m := s.merge(before, queries)
	if after == "" {
		m, err = s.readIndex(ctx, schema.IndexDue, strings.Join(kinds, " "), func(e item) bool {
			return wanted[textOf(e[attrDue])] && numberOf(e[attrAt]) <= now.Unix()
		}, before, queries)
		if err != nil {
			return nil, "", err
		}
	}
	if entries, err = m.take(ctx, limit, always); err != nil || len(entries) < limit {
		return entries, "", err
	}
	for _, e := range entries {
		places[textOf(e[attrDue])] = place{numberOf(e[attrAt]), textOf(e[schema.Partition.Name])}
	}
	next, err = places.text()
	return entries, next, err
}

// places maps a partition key of the due index to the entry after which the page starts.
type places map[string]place

type place struct {
	At int64
	PK string
}

// start is the key of the entry, after which a query continues.
func (p place) start(key, sk string) item {
	start := keyOf(p.PK, sk)
	start[attrDue], start[attrAt] = text(key), number(p.At)
	return start
}

func placesOf(text string) (places, error) {
	p := places{}
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "malformed place in the due index")
	}
	return p, nil
}

func (p places) text() (string, error) {
	text, err := json.Marshal(p)
	return string(text), err
}

// Due implements port.Store. It may miss the newest commits. A record that cannot
// be decoded counts as due.
func (s *Store) Due(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error) {
	records, next, err := s.due(ctx, now, after, limit, func(r run.Run) time.Time {
		if !s.needed(r) {
			return time.Time{}
		}
		return r.Execution.ActBy
	}, dueAct, dueSettle)
	return refsOf(records), next, wrap(err, "read", "what is due")
}

// OutputsDue implements port.Store. It may miss the newest commits.
func (s *Store) OutputsDue(ctx context.Context, now time.Time, after string, limit int) ([]run.Ref, string, error) {
	records, next, err := s.due(ctx, now, after, limit, func(r run.Run) time.Time {
		if !r.BytesLeft() || !s.needed(r) {
			return time.Time{}
		}
		return r.BytesDue()
	}, dueOutput, dueSettle)
	return refsOf(records), next, wrap(err, "read", "the outputs that have expired")
}

func refsOf(records []*record) []run.Ref {
	refs := make([]run.Ref, len(records))
	for i, r := range records {
		refs[i] = r.Ref()
	}
	return refs
}

// WithMachine implements port.Store. It returns the runs in the order of their partition keys,
// which is that of tenant and id. It may miss the newest commits.
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
	before := func(a, b item) bool {
		return cmp.Less(textOf(a[schema.Partition.Name]), textOf(b[schema.Partition.Name]))
	}
	m := s.merge(before, queries)
	if after == (run.Ref{}) {
		if m, err = s.readIndex(ctx, schema.IndexMachines, "", always, before, queries); err != nil {
			return nil, err
		}
	}
	for len(placed) < limit {
		entries, err := m.take(ctx, limit-len(placed), always)
		if err != nil || len(entries) == 0 {
			return placed, err
		}
		records, err := s.records(ctx, entries, false)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if r.Placed() {
				placed = append(placed, port.PlacementOf(r.Run))
			}
		}
	}
	return placed, nil
}

// purgePage is the number of entries that Purge reads at a time. purges is the number of
// records that it deletes concurrently.
const (
	purgePage = 500
	purges    = 16
)

// Purge implements port.Store. It leaves records to the table's TTL for Config.TTLGrace. It
// also returns the number of deleted records with an error. If one record cannot be deleted,
// Purge continues with the others.
func (s *Store) Purge(ctx context.Context, now time.Time, limit int) (int, error) {
	var forgotten atomic.Int64
	var failed []error
	for after := ""; int(forgotten.Load()) < limit; {
		room := min(limit-int(forgotten.Load()), purgePage)
		records, next, err := s.due(ctx, now, after, room, run.Run.PurgeAt, duePurge, dueSettle)
		if err != nil {
			return int(forgotten.Load()), errors.Join(append(failed, wrap(err, "find", "expired runs"))...)
		}
		records = slices.DeleteFunc(records, func(r *record) bool {
			return r.damaged != nil || r.is[schema.TTL] != nil && r.ExpiresAt.Add(s.config.TTLGrace).After(now)
		})
		errs := make([]error, len(records))
		all := s.group(purges)
		for i, r := range records {
			all.Go(func() error {
				if errs[i] = wrap(s.forget(ctx, r), "forget run", r.ID); errs[i] == nil {
					forgotten.Add(1)
				}
				return nil
			})
		}
		_ = all.Wait()
		failed = append(failed, errs...)
		if after = next; after == "" || ctx.Err() != nil {
			break
		}
	}
	return int(forgotten.Load()), errors.Join(failed...)
}

// forget deletes the run's older events, then the record with its heartbeat item. It keeps them
// if another run has replaced the record. The events of that run sort behind the deleted ones.
func (s *Store) forget(ctx context.Context, r *record) error {
	p := &part{key: runKey(r.Ref()), remove: true}
	p.where(attrNonce, "=", r.is[attrNonce])
	parts := []*part{p}
	var events []item
	if err := s.each(ctx, s.queryPartition(pkRun(r.Ref())), func(is item) bool {
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
