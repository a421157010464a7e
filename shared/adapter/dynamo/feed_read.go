package dynamo

import (
	"context"
	"sort"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
)

// firstBatches is the number of batches in the first page of a query. Each further page has
// four times as many. The batches of a slow stream are small, and DynamoDB charges for batches
// that are read and not used.
const firstBatches = 4

// grow calls the function for the items of a query until it returns false.
func (f *Feed) grow(ctx context.Context, query *dynamodb.QueryInput, do func(item) bool) error {
	return grow(ctx, f.store, query, do)
}

func grow(ctx context.Context, s *Store, query *dynamodb.QueryInput, do func(item) bool) error {
	for n := firstBatches; ; n *= 4 {
		query.Limit = limitOf(min(n, port.MaxFeedRecords))
		out, err := call(ctx, s, s.api.Query, query)
		if err != nil {
			return err
		}
		for _, is := range out.Items {
			if !do(is) {
				return nil
			}
		}
		if query.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 {
			return nil
		}
	}
}

// batches is the query for the batches with positions above after.
func (f *Feed) batches(stream string, after int64) *dynamodb.QueryInput {
	return f.store.queryRange(pkFeed(stream), positionSort(sortBatch, after+1), sortBatch+last)
}

// Read implements port.Feed.
func (f *Feed) Read(ctx context.Context, stream string, after int64, limit int) ([]port.FeedRecord, error) {
	if err := port.CheckFeedName(stream); err != nil || limit <= 0 {
		return nil, wrap(err, "read", stream)
	}
	for {
		records, expired, err := f.read(ctx, stream, max(after, 0), limit)
		if err != nil || !expired || len(records) > 0 {
			return records, wrap(err, "read", stream)
		}
		// The table's TTL deletes expired batches late: continue behind them.
		h, err := f.Head(ctx, stream)
		if err != nil {
			return nil, err
		}
		after = max(after, h.Oldest-1)
	}
}

// read returns a page of records. expired reports that it stopped at an expired one.
func (f *Feed) read(ctx context.Context, stream string, after int64, limit int) (records []port.FeedRecord, expired bool, err error) {
	size, until := 0, f.expired()
	var damaged error
	err = f.grow(ctx, f.batches(stream, after), func(is item) bool {
		if expired = numberOf(is[attrAppended]) <= until; expired {
			return false
		}
		var batch []port.FeedRecord
		if batch, damaged = f.recordsIn(is); damaged != nil {
			return false
		}
		for _, r := range batch {
			if r.Position <= after {
				continue
			}
			if size += len(r.Data); len(records) > 0 && size > port.MaxFeedPage {
				return false
			}
			if records = append(records, r); len(records) == limit {
				return false
			}
		}
		return true
	})
	if err == nil {
		err = damaged
	}
	return records, expired, err
}

// Marks implements port.Feed.
func (f *Feed) Marks(ctx context.Context, stream string, after int64, limit int) (marks []port.Mark, err error) {
	if err := port.CheckFeedName(stream); err != nil || limit <= 0 {
		return nil, wrap(err, "read the marks of", stream)
	}
	query := f.store.queryRange(pkFeed(stream), positionSort(sortMark, after+1), sortMark+last)
	query.Limit = limitOf(min(limit, batch))
	expired := f.expired()
	var damaged error
	err = f.store.each(ctx, query, func(is item) bool {
		if numberOf(is[attrAppended]) <= expired {
			return true
		}
		var doc struct{ Data feedBytes }
		if damaged = unpack(is, &doc); damaged != nil {
			return false
		}
		marks = append(marks, port.Mark{Position: positionOf(is, sortMark), Data: doc.Data})
		return len(marks) < limit
	})
	if err == nil {
		err = damaged
	}
	if err != nil {
		return nil, wrap(err, "read the marks of", stream)
	}
	return marks, nil
}

// positionOf returns the position in the sort key of an item.
func positionOf(is item, prefix string) int64 {
	n, _ := strconv.ParseInt(strings.TrimPrefix(textOf(is[schema.Sort.Name]), prefix), 10, 64)
	return n
}

// span has the first and last position of a batch, and the time of its append in Unix
// nanoseconds.
type span struct{ first, last, appended int64 }

// batchAt returns the first batch that ends at or behind position. ok is false if no batch does.
func (f *Feed) batchAt(ctx context.Context, stream string, position int64) (found span, ok bool, err error) {
	query := f.batches(stream, position-1)
	query.Limit = limitOf(1)
	query.ProjectionExpression = aws.String("#sk, #first, #appended")
	query.ExpressionAttributeNames["#first"], query.ExpressionAttributeNames["#appended"] = attrFirst, attrAppended
	out, err := call(ctx, f.store, f.store.api.Query, query)
	if err != nil || len(out.Items) == 0 {
		return span{}, false, err
	}
	is := out.Items[0]
	return span{numberOf(is[attrFirst]), positionOf(is, sortBatch), numberOf(is[attrAppended])}, true, nil
}

// oldest returns the oldest position that has not expired. It reads the oldest batch, unless
// the tail contains it. If the table's TTL is late, it finds that batch by bisection.
func (f *Feed) oldest(ctx context.Context, stream string, h head) (int64, error) {
	expired, t := f.expired(), f.tail(stream)
	if h.newest == 0 {
		return 0, nil
	}
	none := span{first: h.newest + 1, last: h.newest}
	if h.appended <= expired {
		t.setOldest(h.epoch, none)
		return none.first, nil
	}
	known := t.oldest(h.epoch)
	if known.appended > expired {
		return known.first, nil
	}
	found, ok, err := f.batchAt(ctx, stream, max(known.last+1, h.oldest))
	if ok && found.appended <= expired {
		from := found.last + 1
		found = none
		sort.Search(int(none.first-from), func(i int) bool {
			position := from + int64(i)
			if err != nil {
				return false
			}
			var s span
			s, ok, err = f.batchAt(ctx, stream, position)
			// A batch that begins behind the position replaces a deleted one.
			if err != nil || !ok || s.appended <= expired || s.first > position {
				return false
			}
			found = s // the last true result of the search is the oldest batch
			return true
		})
	} else if !ok {
		found = none
	}
	if err != nil {
		return 0, err
	}
	t.setOldest(h.epoch, found)
	return found.first, nil
}
