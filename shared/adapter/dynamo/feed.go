package dynamo

import (
	stdbytes "bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
)

// Feed implements port.Feed in the table of a Store. It is safe for concurrent use, by
// any number of processes.
type Feed struct {
	store  *Store
	config FeedConfig

	mu    sync.Mutex
	tails map[string]*tail
}

// FeedConfig configures a Feed.
type FeedConfig struct {
	// Retention is how long records and marks are kept. The expiry of a batch is computed when
	// it is appended, with the retention of that time.
	Retention time.Duration
	// WaitInterval is the pause between two reads in Wait. 0 means half a second.
	WaitInterval time.Duration
}

var _ port.Feed = (*Feed)(nil)

// NewFeed returns a feed in the table of the store. It makes no call.
func NewFeed(s *Store, c FeedConfig) (*Feed, error) {
	if c.Retention <= 0 || c.WaitInterval < 0 {
		return nil, fmt.Errorf("feed with retention %v and wait interval %v, want a positive retention and no negative interval", c.Retention, c.WaitInterval)
	}
	if c.WaitInterval == 0 {
		c.WaitInterval = 500 * time.Millisecond
	}
	return &Feed{store: s, config: c, tails: map[string]*tail{}}, nil
}

// The items of a stream are under one partition key. Positions in sort keys have all
// digits of an int64.
const (
	feedPrefix = "#feed#"
	feedList   = "#feeds" // the streams in the list index
	sortHead   = "head"
	sortBatch  = "batch#"  // and the last position of the batch
	sortMark   = "mark#"   // and its position
	sortCursor = "cursor#" // and the consumer
)

// Attributes of these items other than those of records and indexes.
const (
	attrEpoch    = "epoch"
	attrNewest   = "newest"
	attrOldest   = "oldest"   // the oldest position was at least this one
	attrFirst    = "first"    // the first position of a batch
	attrAppended = "appended" // when the item was appended, or the last batch of a stream
	attrPosition = "position"
)

func pkFeed(stream string) string { return feedPrefix + stream }

func positionSort(prefix string, position int64) string {
	return fmt.Sprintf("%s%019d", prefix, max(position, 0))
}

// head is the item of a stream as it was read. The zero value is an empty stream.
type head struct {
	// epoch is the epoch of the stream. stored is the value in its item, from which epoch is
	// computed.
	epoch, stored    string
	newest, appended int64
	// oldest is a lower bound of the oldest position.
	oldest int64
	state  feedBytes
}

// expired returns the append time up to which records have expired, in Unix nanoseconds.
func (f *Feed) expired() int64 { return unixNanos(f.store.now().Add(-f.config.Retention)) }

func unixNanos(t time.Time) int64 { return int64(nanos(t) ^ 1<<63) } //nolint:gosec // keeps the bits

// epoch returns the epoch of a stream. It depends on the name of the table, so that the streams
// of a restored table have a new epoch. They reuse positions that the original table has given
// to other records.
func (f *Feed) epoch(stored string) string {
	_, table, arn := strings.Cut(f.store.config.Table, "/")
	if !arn {
		table = f.store.config.Table
	}
	sum := sha256.Sum256([]byte(stored + " " + table))
	return strconv.FormatUint(binary.BigEndian.Uint64(sum[:8]), 36)
}

// lookUp reads the item of a stream.
func (f *Feed) lookUp(ctx context.Context, stream string, consistent bool) (h head, err error) {
	if err := port.CheckFeedName(stream); err != nil {
		return h, err
	}
	is, err := f.store.get(ctx, keyOf(pkFeed(stream), sortHead), consistent)
	if err != nil || is == nil {
		return h, err
	}
	state, err := f.stateIn(is)
	if err != nil {
		return h, err
	}
	stored := textOf(is[attrEpoch])
	return head{
		epoch: f.epoch(stored), stored: stored, newest: numberOf(is[attrNewest]), appended: numberOf(is[attrAppended]),
		oldest: numberOf(is[attrOldest]), state: state,
	}, nil
}

// stateIn returns the state in the item of a stream. Callers must not change it.
func (f *Feed) stateIn(is item) ([]byte, error) {
	packed := documentOf(is[attrDoc])
	if known, ok := f.store.decoded.heads.Get(packed); ok {
		return known, nil
	}
	var doc struct{ State feedBytes }
	if err := unpack(is, &doc); err != nil {
		return nil, err
	}
	f.store.decoded.heads.Put(packed, &doc.State)
	return doc.State, nil
}

// Head implements port.Feed. It reads the oldest batch too, unless this Feed knows it
// from an earlier call.
func (f *Feed) Head(ctx context.Context, stream string) (port.Head, error) {
	h, err := f.lookUp(ctx, stream, true)
	if err == nil {
		f.tail(stream).setHead(h)
		var to port.Head
		if to, err = f.describe(ctx, stream, h); err == nil {
			return to, nil
		}
	}
	return port.Head{}, wrap(err, "read the head of", stream)
}

// describe returns the head with the oldest position.
func (f *Feed) describe(ctx context.Context, stream string, h head) (port.Head, error) {
	oldest, err := f.oldest(ctx, stream, h)
	return port.Head{Epoch: h.epoch, Oldest: oldest, Newest: h.newest, State: h.state}, err
}

// Append implements port.Feed. A batch takes a transaction of two items, three with a mark. It
// reads the head first, unless the head that this Feed read last ends at b.After.
func (f *Feed) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	to, err := f.append(ctx, stream, b)
	if err != nil {
		// The call may have been applied, or the stream may have been replaced.
		f.tail(stream).forget()
		return port.Head{}, wrap(err, "append to", stream)
	}
	return to, nil
}

func (f *Feed) append(ctx context.Context, stream string, b port.Batch) (to port.Head, err error) {
	if err := errors.Join(port.CheckFeedName(stream), b.Check()); err != nil {
		return to, err
	}
	t := f.tail(stream)
	before, known := t.last()
	if !known || before.newest != b.After {
		if before, err = f.lookUp(ctx, stream, true); err != nil {
			return to, err
		}
		if before.newest != b.After {
			return to, &port.FeedConflict{Newest: before.newest}
		}
	}
	after := head{
		epoch: before.epoch, stored: before.stored, newest: b.After + int64(len(b.Records)), state: b.State,
		oldest:   max(before.oldest, t.oldest(before.epoch).first),
		appended: max(before.appended, unixNanos(f.store.now())),
	}
	if after.epoch == "" {
		after.stored = strconv.FormatUint(f.store.config.Random(), 36)
		after.epoch = f.epoch(after.stored)
	}
	parts, err := f.appendParts(stream, b, before, after)
	if err == nil {
		err = f.store.write(ctx, parts)
	}
	if err != nil && !errors.Is(err, errApplied) {
		return to, err
	}
	t.appended(before, after, b.Records)
	return f.describe(ctx, stream, after)
}

// appendParts returns the parts of the head, the batch and the mark.
func (f *Feed) appendParts(stream string, b port.Batch, before, after head) ([]*part, error) {
	pk, nonce := pkFeed(stream), binary.BigEndian.AppendUint64(nil, f.store.config.Random())
	state, err := f.store.pack(struct{ State feedBytes }{b.State})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the state of a stream: %w", err)
	}
	change := &part{key: keyOf(pk, sortHead)}
	change.set(attrEpoch, text(after.stored))
	change.set(attrNewest, number(after.newest))
	change.set(attrAppended, number(after.appended))
	change.set(attrOldest, number(after.oldest))
	change.set(attrDoc, document(state))
	change.set(attrNonce, bytes(nonce))
	change.set(attrList, text(feedList))
	change.set(attrBorn, bytes([]byte(stream)))
	change.dueFrom(stream, b.DueAt)
	if before.epoch == "" {
		change.absent(schema.Partition.Name)
	} else {
		change.where(attrNewest, "=", number(before.newest))
		change.where(attrEpoch, "=", text(before.stored))
	}
	change.refused = func(_ context.Context, is item) error {
		if stdbytes.Equal(bytesOf(is[attrNonce]), nonce) {
			return errApplied
		}
		return &port.FeedConflict{Newest: numberOf(is[attrNewest])}
	}
	parts := []*part{change}
	expiring := func(sk string, v any) (item, error) {
		doc, err := f.store.pack(v)
		if err != nil {
			return nil, fmt.Errorf("cannot encode a batch: %w", err)
		}
		put := keyOf(pk, sk)
		put[attrAppended], put[attrDoc] = number(after.appended), document(doc)
		put[schema.TTL] = number(wholeSecond(time.Unix(0, after.appended).Add(f.config.Retention)) + 1)
		parts = append(parts, &part{put: put})
		return put, nil
	}
	if len(b.Records) > 0 {
		put, err := expiring(positionSort(sortBatch, after.newest), batchOf(b.Records))
		if err != nil {
			return nil, err
		}
		put[attrFirst] = number(b.After + 1)
	}
	if b.Mark != nil {
		if _, err := expiring(positionSort(sortMark, after.newest), struct{ Data feedBytes }{b.Mark}); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// Wait implements port.Feed. It reads the head at once, and then once in each interval with an
// eventually consistent read.
func (f *Feed) Wait(ctx context.Context, stream string, after int64) error {
	for consistent := true; ; consistent = false {
		h, err := f.lookUp(ctx, stream, consistent)
		if err == nil && h.newest > after {
			return nil
		}
		if err == nil {
			err = f.store.pause(ctx, f.config.WaitInterval)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return wrap(err, "wait for", stream)
		}
	}
}

// Trim implements port.Feed: it deletes nothing, because the table's TTL does.
func (f *Feed) Trim(_ context.Context, stream string, _ int) (int, error) {
	return 0, wrap(port.CheckFeedName(stream), "trim", stream)
}

// Cursor implements port.Feed.
func (f *Feed) Cursor(ctx context.Context, stream, consumer string) (int64, error) {
	err := errors.Join(port.CheckFeedName(stream), port.CheckFeedName(consumer))
	var is item
	if err == nil {
		is, err = f.store.get(ctx, keyOf(pkFeed(stream), sortCursor+consumer), true)
	}
	return numberOf(is[attrPosition]), wrap(err, "read a cursor of", stream)
}

// removedFor is how long the item of a removed consumer is kept, so that a repeated call finds
// it.
const removedFor = 24 * time.Hour

// MoveCursor implements port.Feed.
func (f *Feed) MoveCursor(ctx context.Context, stream, consumer string, from, to int64) error {
	if err := errors.Join(port.CheckFeedName(stream), port.CheckFeedName(consumer)); err != nil {
		return wrap(err, "move a cursor of", stream)
	}
	nonce := binary.BigEndian.AppendUint64(nil, f.store.config.Random())
	p := &part{key: keyOf(pkFeed(stream), sortCursor+consumer)}
	p.set(attrPosition, number(to))
	p.set(attrNonce, bytes(nonce))
	if to == 0 {
		p.set(schema.TTL, number(f.store.now().Add(removedFor).Unix()))
	} else {
		p.drop(schema.TTL)
	}
	p.where(attrPosition, "=", number(from))
	if from == 0 {
		p.conditions = []string{"(attribute_not_exists(" + p.name(attrPosition) + ") OR " + p.conditions[0] + ")"}
	}
	p.refused = func(_ context.Context, is item) error {
		if stdbytes.Equal(bytesOf(is[attrNonce]), nonce) {
			return errApplied
		}
		return port.ErrConflict
	}
	err := f.store.write(ctx, []*part{p})
	if errors.Is(err, errApplied) {
		err = nil
	}
	return wrap(err, "move a cursor of", stream)
}

// Streams implements port.Feed. It reads an index, which may miss the newest streams.
func (f *Feed) Streams(ctx context.Context, prefix, after string, limit int) (streams []string, next string, err error) {
	limit = min(max(limit, 1), math.MaxInt32-1)
	query := f.store.indexQuery(schema.IndexList, attrList, feedList)
	*query.KeyConditionExpression += " AND #born BETWEEN :from AND :to"
	query.ExpressionAttributeNames["#born"] = attrBorn
	from := max(prefix, after+"\x00") // the first name behind after
	query.ExpressionAttributeValues[":from"] = bytes([]byte(from))
	query.ExpressionAttributeValues[":to"] = bytes([]byte(prefix + "\xff")) // no UTF-8 has this byte
	if from > prefix+"\xff" {
		return nil, "", nil
	}
	query.Limit = limitOf(limit + 1)
	err = f.store.each(ctx, query, func(is item) bool {
		streams = append(streams, string(bytesOf(is[attrBorn])))
		return len(streams) <= limit
	})
	if len(streams) > limit {
		streams = streams[:limit]
		next = streams[limit-1]
	}
	return streams, next, wrap(err, "list streams with", prefix)
}

func limitOf(n int) *int32 {
	limit := int32(min(max(n, 1), math.MaxInt32)) //nolint:gosec // within the range
	return &limit
}
