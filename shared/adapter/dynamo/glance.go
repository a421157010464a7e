package dynamo

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// A query of each partition key of an index takes half a read unit, also if it finds
// nothing: 16 of them each minute for each kind of work cost more than all else that a
// table without runs does. One scan returns a small index for half a unit for each 8 KB.
const (
	// glanceEntries is the most entries of an index that is scanned.
	glanceEntries = 64
	// glancePause is how long an index that has more is not scanned again.
	glancePause = 10 * time.Minute
)

// glances has the indexes that are too large for a scan, until when.
type glances struct {
	mu    sync.Mutex
	large map[string]time.Time
}

// glance returns all entries of an index, in no order, if they are few. It is as
// consistent as queries of the index.
func (s *Store) glance(ctx context.Context, index string) (entries []item, all bool, err error) {
	g, now := &s.glances, s.now()
	g.mu.Lock()
	large := now.Before(g.large[index])
	g.mu.Unlock()
	if large {
		return nil, false, nil
	}
	scan := &dynamodb.ScanInput{
		TableName: &s.config.Table, IndexName: &index, Limit: aws.Int32(glanceEntries + 1), ReturnConsumedCapacity: s.wanted(),
	}
	for {
		out, err := call(ctx, s, s.api.Scan, scan)
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, out.Items...)
		if len(entries) > glanceEntries {
			break
		}
		if scan.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 {
			return entries, true, nil
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.large == nil {
		g.large = map[string]time.Time{}
	}
	g.large[index] = now.Add(glancePause)
	return nil, false, nil
}

// survey reads the entries of an index that are wanted, in order: by a scan of a small
// index, otherwise by the queries.
func (s *Store) survey(
	ctx context.Context, index string, wanted func(item) bool, before func(a, b item) bool, queries []*dynamodb.QueryInput,
) (*merged, error) {
	entries, all, err := s.glance(ctx, index)
	if err != nil || !all {
		return s.merge(before, queries), err
	}
	entries = slices.DeleteFunc(entries, func(e item) bool { return !wanted(e) })
	slices.SortStableFunc(entries, func(a, b item) int {
		switch {
		case before(a, b):
			return -1
		case before(b, a):
			return 1
		}
		return 0
	})
	return &merged{store: s, before: before, queries: []*source{{ready: entries, ended: true}}}, nil
}
