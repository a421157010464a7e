package dynamo

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// A query of each partition key of an index takes half a read unit, even if it returns nothing.
// 16 queries each minute for each kind of work cost more than everything else in a table
// without runs. One scan returns a small index for half a unit for each 8 KB.
const (
	// glanceEntries is the largest number of entries of an index that is scanned.
	glanceEntries = 64
	// glancePause is how long a larger index is not scanned again.
	glancePause = 10 * time.Minute
)

// indexScans has, by index, until when a large index is not scanned, and the last scan of a small
// one.
type indexScans struct {
	mu    sync.Mutex
	large map[string]time.Time
	last  map[string]scanned
}

// scanned is the result of a scan of an index.
type scanned struct {
	at      time.Time
	entries []item
	// used has the parts of the index for which the scan was used. Each part uses it once.
	used map[string]bool
}

// scanIndex returns all entries of an index, in no order. all is false if they are too many for a
// scan. It reuses a scan that is younger than Config.ScanAge and was not used for the part of
// the index yet.
func (s *Store) scanIndex(ctx context.Context, index, part string) (entries []item, all bool, err error) {
	g, now := &s.glances, s.now()
	g.mu.Lock()
	large, last := now.Before(g.large[index]), g.last[index]
	fresh := last.used != nil && !last.used[part] && now.Sub(last.at) < s.config.ScanAge
	if fresh {
		last.used[part] = true
	}
	g.mu.Unlock()
	switch {
	case large:
		return nil, false, nil
	case fresh:
		return slices.Clone(last.entries), true, nil
	}
	scan := &dynamodb.ScanInput{
		TableName: &s.config.Table, IndexName: &index, Limit: aws.Int32(glanceEntries + 1), ReturnConsumedCapacity: s.returnConsumed(),
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
			g.scanned(index, scanned{now, slices.Clone(entries), map[string]bool{part: true}})
			return entries, true, nil
		}
	}
	g.exceeded(index, now.Add(glancePause))
	return nil, false, nil
}

// scanned stores a scan.
func (g *indexScans) scanned(index string, s scanned) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = map[string]scanned{}
	}
	g.last[index] = s
}

// exceeded records that an index is too large for scans until a time.
func (g *indexScans) exceeded(index string, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.large == nil {
		g.large = map[string]time.Time{}
	}
	g.large[index] = until
	delete(g.last, index)
}

// readIndex returns the wanted entries of a part of an index, in order. It scans a small index and
// runs the queries on a large one.
func (s *Store) readIndex(
	ctx context.Context, index, part string, wanted func(item) bool, before func(a, b item) bool, queries []*dynamodb.QueryInput,
) (*merged, error) {
	entries, all, err := s.scanIndex(ctx, index, part)
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
