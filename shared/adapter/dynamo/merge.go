package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// merged reads several queries of an index as one, in order. It reads each
// query only as far as needed.
type merged struct {
	store   *Store
	before  func(a, b item) bool
	queries []*source
}

// source is one of the queries with the items not yet returned.
type source struct {
	query *dynamodb.QueryInput
	ready []item
	ended bool
}

func (s *Store) merge(before func(a, b item) bool, queries []*dynamodb.QueryInput) *merged {
	m := &merged{store: s, before: before}
	for _, q := range queries {
		m.queries = append(m.queries, &source{query: q})
	}
	return m
}

// take removes and returns at most limit items while the condition holds.
func (m *merged) take(ctx context.Context, limit int, wanted func(item) bool) ([]item, error) {
	var taken []item
	for len(taken) < limit {
		from, err := m.next(ctx)
		if err != nil {
			return nil, err
		}
		if from == nil || !wanted(from.ready[0]) {
			break
		}
		taken = append(taken, from.ready[0])
		from.ready = from.ready[1:]
	}
	return taken, nil
}

// next returns the source of the next item, or nil at the end.
func (m *merged) next(ctx context.Context) (*source, error) {
	if err := m.fill(ctx); err != nil {
		return nil, err
	}
	var first *source
	for _, q := range m.queries {
		if len(q.ready) > 0 && (first == nil || m.before(q.ready[0], first.ready[0])) {
			first = q
		}
	}
	return first, nil
}

// fill reads the next page of each query whose items are all returned.
func (m *merged) fill(ctx context.Context) error {
	var used []*source
	for _, q := range m.queries {
		if len(q.ready) == 0 && !q.ended {
			used = append(used, q)
		}
	}
	if len(used) == 0 {
		return nil
	}
	if len(used) == 1 || m.store.config.Concurrency == 1 {
		for _, q := range used {
			if err := q.read(ctx, m.store); err != nil {
				return err
			}
		}
		return nil
	}
	all := m.store.group(len(used))
	for _, q := range used {
		all.Go(func() error { return q.read(ctx, m.store) })
	}
	return all.Wait()
}

func (q *source) read(ctx context.Context, s *Store) error {
	for len(q.ready) == 0 && !q.ended {
		out, err := call(ctx, s, s.api.Query, q.query)
		if err != nil {
			return err
		}
		q.ready, q.query.ExclusiveStartKey = out.Items, out.LastEvaluatedKey
		q.ended = len(out.LastEvaluatedKey) == 0
	}
	return nil
}

func always(item) bool { return true }
