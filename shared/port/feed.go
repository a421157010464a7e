package port

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Feed keeps streams of records. A stream has positions from 1 without gaps; a record
// keeps its position. Streams are independent of each other, and one that was never
// written to is empty. The names of streams and consumers are 1 to 512 bytes of UTF-8.
//
// Feed is safe for concurrent use, by any number of processes. Head, Positions, Read,
// Marks and Cursor are strongly consistent. A write that returned nil is durable, unless it
// is relaxed, and visible as a whole. One that returned an error other than ErrConflict may have been
// applied: the caller reads the head or the cursor to find out. The faults are
// Unavailable and StoreFull, and Internal for what the port does not allow.
//
// A record or a mark expires when the retention of the feed has passed since its
// append, whether or not it is deleted then. No method returns an expired one.
type Feed interface {
	AnswerFeed
	// Marks returns at most limit marks of positions above after, in order.
	Marks(ctx context.Context, stream string, after int64, limit int) ([]Mark, error)
	// Cursor returns the position up to which a consumer has handled a stream; 0 for a
	// new consumer. MoveCursor sets it from one position to another, or returns
	// ErrConflict if it is not at from. A move to 0 removes the consumer. The stream may
	// be empty.
	Cursor(ctx context.Context, stream, consumer string) (int64, error)
	MoveCursor(ctx context.Context, stream, consumer string, from, to int64) error
	// Streams returns a page of at most limit streams with the prefix, in the order of
	// their bytes. after is the next of the previous page; next is empty at the end.
	// Streams may be eventually consistent.
	Streams(ctx context.Context, prefix, after string, limit int) (streams []string, next string, err error)
	// Due returns a page of at most limit streams of a group that are due by now, the longest
	// overdue first: a batch has made them due, or SetDue, and Settle has not ended it. A group
	// is the first part of names, up to and including their first slash. It may return a
	// stream up to a second late. after is the next of the previous page; next is empty at the
	// end. Due may be eventually consistent.
	Due(ctx context.Context, group string, now time.Time, after string, limit int) (streams []string, next string, err error)
	// SetDue makes a stream due at a time, in place of an earlier one. It does nothing for an
	// empty stream.
	SetDue(ctx context.Context, stream string, at time.Time) error
	// Settle ends that a stream is due, or returns ErrConflict if its newest position is
	// another one.
	Settle(ctx context.Context, stream string, newest int64) error
	// Trim deletes at most limit expired records and marks of a stream and returns their
	// number. It returns 0 when none is left, or if the database deletes them by itself.
	Trim(ctx context.Context, stream string, limit int) (int, error)
}

// AnswerFeed is the part of Feed that the streams of inference tasks need, under its
// contract. An adapter of AnswerFeed alone may refuse batches without records, and with
// marks, and does not notice that a stream is lost while a process writes it.
type AnswerFeed interface {
	// Head returns the end of a stream.
	Head(ctx context.Context, stream string) (Head, error)
	// Append writes a batch behind the position Batch.After and returns the new head. If
	// the stream's newest position is another one, the error is a *FeedConflict, which is
	// ErrConflict, and nothing is written. Append does not look for known ids. A writer
	// appends only records that Positions does not find, behind the head that it read
	// before; then no record is stored twice.
	Append(ctx context.Context, stream string, b Batch) (Head, error)
	// Positions returns the positions of those records that the stream has, by id. Only
	// ID and At of a record are used.
	Positions(ctx context.Context, stream string, records []FeedRecord) (map[string]int64, error)
	// Read returns at most limit records with a position above after, in order. The
	// result is shorter if the records have more than MaxFeedPage bytes, but not empty
	// because of that. If records above after have expired, the first one has a larger
	// position than after+1.
	Read(ctx context.Context, stream string, after int64, limit int) ([]FeedRecord, error)
	// Wait returns nil when the newest position of the stream is above after, at once if
	// it is, and the error of ctx when that ends. An adapter may look at intervals.
	Wait(ctx context.Context, stream string, after int64) error
}

// The largest sizes in bytes, and the most records of a batch.
const (
	MaxFeedName    = 512
	MaxFeedID      = 200
	MaxFeedData    = 128 << 10
	MaxFeedState   = 4 << 10
	MaxFeedMark    = 8 << 10
	MaxFeedRecords = 1000
	// MaxFeedBatch is the size of the ids and data of a batch, MaxFeedPage that of the
	// data which Read returns.
	MaxFeedBatch = 256 << 10
	MaxFeedPage  = 1 << 20
)

// EventStreams is the prefix of the streams of events.
const EventStreams = "events/"

// EventStream returns the name of the stream of a tenant's events. The data of its
// records are DSSE envelopes or events without one (events.Bare), their ids the ULIDs of the
// events.
func EventStream(tenant string) string { return EventStreams + tenant }

// Head is the end of a stream.
type Head struct {
	// Epoch identifies the positions of a stream: 1 to 32 characters of [a-z0-9]. A
	// stream that was lost and begun again has another one. Empty for a stream without
	// a batch.
	Epoch string
	// Oldest and Newest are the first and the last position that the stream has. Both
	// are 0 for a stream without a record; Oldest is Newest+1 if all have expired.
	Oldest, Newest int64
	// State is that of the last batch.
	State []byte
}

// Batch is what one Append writes.
type Batch struct {
	// After is the newest position of the stream, to be known to the writer.
	After int64
	// Records get the positions After+1 and following. There may be none.
	Records []FeedRecord
	// State replaces that of the head.
	State []byte
	// Relaxed permits that a crash of the host loses the batch, as long as no later write of
	// the feed that is not relaxed has returned. The batch is visible at once, and outlives
	// the process. An adapter may ignore it.
	Relaxed bool
	// DueAt makes the stream due at a time, unless it is due already. Zero changes nothing.
	DueAt time.Time
	// Mark is stored at the last position of the stream with this batch, in place of an
	// earlier mark there. Nil is no mark; the mark of an empty stream is refused.
	Mark []byte
}

// FeedRecord is a record of a stream.
type FeedRecord struct {
	// Position is set by Read and ignored by Append.
	Position int64
	// ID identifies the record within its stream; it is not empty.
	ID string
	// At is the time of what is recorded, in UTC. A record is appended after it, by a
	// clock that differs by less than a minute.
	At time.Time
	// Data is any bytes.
	Data []byte
}

// Mark is data that belongs to a position, such as a checkpoint.
type Mark struct {
	Position int64
	Data     []byte
}

// FeedConflict is the error of an Append behind another position than the newest. It
// is ErrConflict.
type FeedConflict struct{ Newest int64 }

func (c *FeedConflict) Error() string {
	return fmt.Sprintf("the newest position of the stream is %d: %v", c.Newest, ErrConflict)
}

// Unwrap returns ErrConflict.
func (c *FeedConflict) Unwrap() error { return ErrConflict }

// CheckFeedGroup returns an Internal fault for an invalid group of streams.
func CheckFeedGroup(group string) error {
	if strings.Index(group, "/") != len(group)-1 {
		return fault.New(fault.Internal, "got the group %q of streams, want a name that ends with its only slash", group)
	}
	return CheckFeedName(group)
}

// Size returns the bytes of the record in a batch.
func (r FeedRecord) Size() int { return len(r.ID) + len(r.Data) }

// Check returns an Internal fault for a batch that Append refuses.
func (b Batch) Check() error {
	size := 0
	for i, r := range b.Records {
		size += r.Size()
		switch {
		case r.ID == "" || len(r.ID) > MaxFeedID || !utf8.ValidString(r.ID):
			return fault.New(fault.Internal, "record %d of a batch: got an id of %d bytes, want 1 to %d of UTF-8", i, len(r.ID), MaxFeedID)
		case len(r.Data) > MaxFeedData:
			return fault.New(fault.Internal, "record %s: got %d bytes, want at most %d", r.ID, len(r.Data), MaxFeedData)
		}
	}
	switch {
	case b.After < 0:
		return fault.New(fault.Internal, "batch behind position %d, want 0 or more", b.After)
	case len(b.Records) > MaxFeedRecords || size > MaxFeedBatch:
		return fault.New(fault.Internal, "batch of %d records with %d bytes, want at most %d with %d bytes", len(b.Records), size, MaxFeedRecords, MaxFeedBatch)
	case len(b.State) > MaxFeedState:
		return fault.New(fault.Internal, "state of %d bytes, want at most %d", len(b.State), MaxFeedState)
	case len(b.Mark) > MaxFeedMark:
		return fault.New(fault.Internal, "mark of %d bytes, want at most %d", len(b.Mark), MaxFeedMark)
	case b.Mark != nil && b.After+int64(len(b.Records)) == 0:
		return fault.New(fault.Internal, "mark of an empty stream")
	}
	return nil
}

// CheckFeedName returns an Internal fault for an invalid name of a stream or a consumer.
func CheckFeedName(name string) error {
	if name == "" || len(name) > MaxFeedName || !utf8.ValidString(name) {
		return fault.New(fault.Internal, "got a name of %d bytes, want 1 to %d of UTF-8", len(name), MaxFeedName)
	}
	return nil
}
