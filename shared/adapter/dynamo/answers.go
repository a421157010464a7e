package dynamo

import (
	stdbytes "bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Answers implements port.AnswerFeed in the table of a Store. An append is one conditional put
// of one item. It costs a quarter of an append to a Feed, which is a transaction of two items.
// The key of a batch is its first position. A writer appends behind the last batch that it has
// read or written, so its put fails if another writer has stored a batch there. The table's TTL
// deletes the whole stream. Answers is safe for concurrent use by any number of processes.
type Answers struct {
	store  *Store
	config FeedConfig

	mu    sync.Mutex
	tails map[string]answerTail
}

// answerTail is the end of a stream that this process last read or wrote.
type answerTail struct {
	newest int64
	epoch  string
}

var _ port.AnswerFeed = (*Answers)(nil)

// NewAnswers returns the streams in the table of the store. It makes no call.
func NewAnswers(s *Store, c FeedConfig) (*Answers, error) {
	if c.Retention <= 0 || c.WaitInterval <= 0 {
		return nil, fmt.Errorf("answers with retention %v and wait interval %v, want positive ones", c.Retention, c.WaitInterval)
	}
	return &Answers{store: s, config: c, tails: map[string]answerTail{}}, nil
}

const (
	answerPrefix = "#answer#"
	attrThrough  = "through" // the last position of a batch
)

// answerDoc is the document of a batch.
type answerDoc struct {
	feedBatch
	State feedBytes `json:"state,omitempty"`
}

func (f *Answers) expired() int64 { return unixNanos(f.store.now().Add(-f.config.Retention)) }

// upTo returns the query for the batches that begin at or before position, newest first.
func (f *Answers) upTo(stream string, position int64, consistent bool) *dynamodb.QueryInput {
	query := f.store.queryRange(answerPrefix+stream, sortBatch, positionSort(sortBatch, position))
	query.ScanIndexForward, query.Limit, query.ConsistentRead = aws.Bool(false), limitOf(1), &consistent
	return query
}

// newest returns the newest batch, or nil for an empty stream.
func (f *Answers) newest(ctx context.Context, stream string, consistent bool) (item, error) {
	out, err := call(ctx, f.store, f.store.api.Query, f.upTo(stream, math.MaxInt64, consistent))
	if err != nil || len(out.Items) == 0 {
		return nil, err
	}
	return out.Items[0], nil
}

func (f *Answers) tail(stream string) answerTail {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tails[stream]
}

// remember stores the end of a stream, or deletes it if the stream is empty.
func (f *Answers) remember(stream string, t answerTail) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.tails) >= maxTails {
		clear(f.tails)
	}
	if t.newest == 0 {
		delete(f.tails, stream)
		return
	}
	f.tails[stream] = t
}

// Head implements port.AnswerFeed.
func (f *Answers) Head(ctx context.Context, stream string) (port.Head, error) {
	h, err := f.head(ctx, stream)
	return h, wrap(err, "read the head of", stream)
}

func (f *Answers) head(ctx context.Context, stream string) (h port.Head, err error) {
	if err := port.CheckFeedName(stream); err != nil {
		return h, err
	}
	is, err := f.newest(ctx, stream, true)
	if err != nil || is == nil {
		f.remember(stream, answerTail{})
		return h, err
	}
	var doc answerDoc
	if err := unpack(is, &doc); err != nil {
		return h, err
	}
	h = port.Head{Epoch: textOf(is[attrEpoch]), Newest: numberOf(is[attrThrough]), State: doc.State}
	f.remember(stream, answerTail{h.Newest, h.Epoch})
	h.Oldest = h.Newest + 1
	query, expired := f.store.queryPrefix(answerPrefix+stream, sortBatch), f.expired()
	query.Limit = limitOf(1)
	err = f.store.each(ctx, query, func(is item) bool {
		if numberOf(is[attrAppended]) <= expired {
			return true
		}
		h.Oldest = numberOf(is[attrFirst])
		return false
	})
	return h, err
}

// Append implements port.AnswerFeed. It reads the newest batch first, unless this process has
// already read or appended the batch that ends at b.After.
func (f *Answers) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	h, err := f.append(ctx, stream, b)
	if err != nil {
		f.remember(stream, answerTail{}) // the call may have been applied, or the stream may be longer
		return port.Head{}, wrap(err, "append to", stream)
	}
	return h, nil
}

func (f *Answers) append(ctx context.Context, stream string, b port.Batch) (h port.Head, err error) {
	if err := errors.Join(port.CheckFeedName(stream), b.Check()); err != nil {
		return h, err
	}
	if len(b.Records) == 0 || b.Mark != nil {
		return h, fault.New(fault.Internal, "batch of %d records with a mark: %t, want records alone", len(b.Records), b.Mark != nil)
	}
	tail := f.tail(stream)
	if tail.newest != b.After || b.After == 0 {
		if tail, err = f.readTail(ctx, stream); err != nil {
			return h, err
		}
		if tail.newest != b.After {
			return h, &port.FeedConflict{Newest: tail.newest}
		}
	}
	if tail.epoch == "" {
		tail.epoch = strconv.FormatUint(f.store.config.Random(), 36)
	}
	doc, err := f.store.pack(answerDoc{batchOf(b.Records), b.State})
	if err != nil {
		return h, fmt.Errorf("cannot encode a batch: %w", err)
	}
	tail.newest = b.After + int64(len(b.Records))
	err = f.store.write(ctx, []*part{f.put(stream, b.After+1, tail, doc)})
	if errors.Is(err, port.ErrConflict) {
		if tail, err = f.readTail(ctx, stream); err == nil {
			err = &port.FeedConflict{Newest: tail.newest}
		}
	}
	if err != nil && !errors.Is(err, errApplied) {
		return h, err
	}
	f.remember(stream, tail)
	return port.Head{Epoch: tail.epoch, Oldest: 1, Newest: tail.newest, State: b.State}, nil
}

func (f *Answers) readTail(ctx context.Context, stream string) (answerTail, error) {
	is, err := f.newest(ctx, stream, true)
	if err != nil || is == nil {
		return answerTail{}, err
	}
	return answerTail{numberOf(is[attrThrough]), textOf(is[attrEpoch])}, nil
}

// put returns the part that stores a batch at position first. Its condition fails if a batch is
// stored there.
func (f *Answers) put(stream string, first int64, tail answerTail, doc []byte) *part {
	nonce := binary.BigEndian.AppendUint64(nil, f.store.config.Random())
	put := keyOf(answerPrefix+stream, positionSort(sortBatch, first))
	appended := f.store.now()
	put[attrFirst], put[attrThrough], put[attrEpoch] = number(first), number(tail.newest), text(tail.epoch)
	put[attrAppended], put[attrDoc], put[attrNonce] = number(unixNanos(appended)), document(doc), bytes(nonce)
	put[schema.TTL] = number(wholeSecond(appended.Add(f.config.Retention)) + 1)
	p := &part{put: put}
	p.absent(schema.Partition.Name)
	p.refused = func(_ context.Context, is item) error {
		if stdbytes.Equal(bytesOf(is[attrNonce]), nonce) {
			return errApplied
		}
		return port.ErrConflict
	}
	return p
}

// Read implements port.AnswerFeed.
func (f *Answers) Read(ctx context.Context, stream string, after int64, limit int) ([]port.FeedRecord, error) {
	if err := port.CheckFeedName(stream); err != nil || limit <= 0 {
		return nil, wrap(err, "read", stream)
	}
	records, err := f.read(ctx, stream, max(after, 0), limit)
	return records, wrap(err, "read", stream)
}

func (f *Answers) read(ctx context.Context, stream string, after int64, limit int) (records []port.FeedRecord, err error) {
	size, expired := 0, f.expired()
	var damaged error
	// add adds the records of a batch and reports whether there is room for more.
	add := func(is item) bool {
		if numberOf(is[attrAppended]) <= expired {
			return true
		}
		var batch []port.FeedRecord
		if batch, damaged = recordsIn(is); damaged != nil {
			return false
		}
		for _, r := range batch {
			if r.Position <= after {
				continue
			}
			if size += len(r.Data); len(records) > 0 && size > port.MaxFeedPage || len(records) == limit {
				return false
			}
			records = append(records, r)
		}
		return len(records) < limit
	}
	query := f.store.queryRange(answerPrefix+stream, positionSort(sortBatch, after+1), sortBatch+last)
	first := true
	var failed error
	err = grow(ctx, f.store, query, func(is item) bool {
		if first && numberOf(is[attrFirst]) > after+1 {
			if failed = f.within(ctx, stream, after, add); failed != nil || damaged != nil || len(records) == limit {
				return false
			}
		}
		first = false
		return add(is)
	})
	if err == nil && first && damaged == nil {
		err = f.within(ctx, stream, after, add)
	}
	return records, errors.Join(err, failed, damaged)
}

// within calls add for the batch that begins at or before position after and ends behind it, if
// any.
func (f *Answers) within(ctx context.Context, stream string, after int64, add func(item) bool) error {
	if after == 0 {
		return nil
	}
	out, err := call(ctx, f.store, f.store.api.Query, f.upTo(stream, after, true))
	if err == nil && len(out.Items) > 0 && numberOf(out.Items[0][attrThrough]) > after {
		add(out.Items[0])
	}
	return err
}

// Positions implements port.AnswerFeed. It reads the whole stream. Writers call it only after a
// failure.
func (f *Answers) Positions(ctx context.Context, stream string, records []port.FeedRecord) (map[string]int64, error) {
	if err := port.CheckFeedName(stream); err != nil {
		return nil, wrap(err, "read positions of", stream)
	}
	found, wanted := map[string]int64{}, map[string]bool{}
	for _, r := range records {
		wanted[r.ID] = true
	}
	for after := int64(0); len(found) < len(wanted); {
		page, err := f.read(ctx, stream, after, port.MaxFeedRecords)
		if err != nil {
			return nil, wrap(err, "read positions of", stream)
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			if after = r.Position; wanted[r.ID] {
				found[r.ID] = r.Position
			}
		}
	}
	return found, nil
}

// Remove implements port.AnswerFeed. It deletes the batches one after the other, the newest last:
// until then the stream has its end.
func (f *Answers) Remove(ctx context.Context, stream string) error {
	err := port.CheckFeedName(stream)
	if err == nil {
		f.remember(stream, answerTail{})
		query := f.store.queryPrefix(answerPrefix+stream, sortBatch)
		var failed error
		err = f.store.each(ctx, query, func(is item) bool {
			key := keyOf(textOf(is[schema.Partition.Name]), textOf(is[schema.Sort.Name]))
			failed = f.store.send(ctx, []*part{{key: key, remove: true}})
			return failed == nil
		})
		err = errors.Join(err, failed)
	}
	return wrap(err, "remove the stream", stream)
}

// Wait implements port.AnswerFeed. It reads at once, then once in each interval. Eventually
// consistent reads suffice, because the reader reads the stream before and after the call.
func (f *Answers) Wait(ctx context.Context, stream string, after int64) error {
	if err := port.CheckFeedName(stream); err != nil {
		return wrap(err, "wait for", stream)
	}
	for {
		is, err := f.newest(ctx, stream, false)
		if err == nil && is != nil && numberOf(is[attrThrough]) > after {
			return nil
		}
		if err == nil && is == nil && after < 0 {
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
