package dynamo

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	// dueFeed precedes the group of a stream in the keys of the due index. Only streams that
	// are due have an entry there.
	dueFeed = "feed "
	// feedShards is the number of partition keys of a group in the due index. A stream writes
	// to the index when it becomes due, and when it is settled.
	feedShards = 4
)

// feedDue returns the partition key of a stream in the due index.
func feedDue(stream string) string {
	group, _, _ := strings.Cut(stream, "/")
	return dueKey(dueFeed+group+"/", shardOf(pkFeed(stream), feedShards))
}

// dueFrom makes a stream due at a time. It does not change the index entry of a stream that is
// due already.
func (p *part) dueFrom(stream string, at time.Time) {
	if at.IsZero() {
		return
	}
	p.set(attrDue, text(feedDue(stream)))
	p.sets = append(p.sets, p.name(attrAt)+" = if_not_exists("+p.name(attrAt)+", "+p.value(number(wholeSecond(at)))+")")
}

// Due implements port.Feed. It reads only the index, whose times are whole seconds.
func (f *Feed) Due(ctx context.Context, group string, now time.Time, after string, limit int) ([]string, string, error) {
	if err := port.CheckFeedGroup(group); err != nil {
		return nil, "", err
	}
	entries, next, err := f.store.dueEntries(ctx, now, after, max(limit, 1), sortHead, feedShards, dueFeed+group)
	if err != nil {
		return nil, "", wrap(err, "read", "the streams that are due")
	}
	streams := make([]string, len(entries))
	for i, e := range entries {
		streams[i] = strings.TrimPrefix(textOf(e[schema.Partition.Name]), feedPrefix)
	}
	return streams, next, nil
}

// SetDue implements port.Feed.
func (f *Feed) SetDue(ctx context.Context, stream string, at time.Time) error {
	p := &part{key: keyOf(pkFeed(stream), sortHead)}
	p.set(attrDue, text(feedDue(stream)))
	p.set(attrAt, number(wholeSecond(at)))
	p.present(schema.Partition.Name)
	p.refused = func(context.Context, item) error { return errApplied } // the stream is empty
	return f.change(ctx, "set the time of", stream, p)
}

// Settle implements port.Feed.
func (f *Feed) Settle(ctx context.Context, stream string, newest int64) error {
	p := &part{key: keyOf(pkFeed(stream), sortHead)}
	p.drop(attrDue)
	p.drop(attrAt)
	p.where(attrNewest, "=", number(newest))
	p.refused = func(_ context.Context, is item) error {
		if newest == 0 && is == nil {
			return errApplied
		}
		return port.ErrConflict
	}
	return f.change(ctx, "settle", stream, p)
}

// change writes a part of the item of a stream. errApplied counts as success.
func (f *Feed) change(ctx context.Context, doing, stream string, p *part) error {
	err := port.CheckFeedName(stream)
	if err == nil {
		err = f.store.write(ctx, []*part{p})
	}
	if errors.Is(err, errApplied) {
		err = nil
	}
	return wrap(err, doing, stream)
}
