package port

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Feed stores streams of records. A stream has positions from 1 without gaps. A record keeps
// its position. Streams are independent of each other, and a stream without records is empty.
// The names of streams and consumers are 1 to 512 bytes of UTF-8.
//
// Feed is safe for concurrent use, by any number of processes. Head, Positions, Read, Marks and
// Cursor are strongly consistent. A write that returned nil is visible as a whole, and durable
// unless it is relaxed. A write that returned an error other than ErrConflict may have been
// applied; the caller reads the head or the cursor to find out. The faults are Unavailable,
// StoreFull, and Internal for invalid arguments.
//
// A record or a mark expires once the retention of the feed has passed since its append, even
// if it is not deleted yet. No method returns an expired one.
type Feed interface {
	RecordFeed
	// Marks returns at most limit marks at positions above after, in order.
	Marks(ctx context.Context, stream string, after int64, limit int) ([]Mark, error)
	// Cursor returns the position up to which a consumer has handled a stream; 0 for a new
	// consumer. MoveCursor moves it from one position to another, or returns ErrConflict if it
	// is not at from. A move to 0 removes the consumer. The stream may be empty.
	Cursor(ctx context.Context, stream, consumer string) (int64, error)
	MoveCursor(ctx context.Context, stream, consumer string, from, to int64) error
	// Streams returns a page of at most limit streams with the prefix, in byte order. after is
	// the next of the previous page; next is empty at the end. Streams may be eventually
	// consistent.
	Streams(ctx context.Context, prefix, after string, limit int) (streams []string, next string, err error)
	// Due returns a page of at most limit streams of a group that are due by now, the longest
	// overdue first. A batch or SetDue makes a stream due, until Settle. A group is the first
	// part of stream names, up to and including their first slash. Due may return a stream up
	// to a second late. after is the next of the previous page; next is empty at the end. Due
	// may be eventually consistent.
	Due(ctx context.Context, group string, now time.Time, after string, limit int) (streams []string, next string, err error)
	// SetDue makes a stream due at the time at. It replaces an earlier time. It does nothing
	// for an empty stream.
	SetDue(ctx context.Context, stream string, at time.Time) error
	// Settle makes a stream no longer due. It returns ErrConflict if the newest position of the
	// stream is not newest.
	Settle(ctx context.Context, stream string, newest int64) error
	// Trim deletes at most limit expired records and marks of a stream and returns their
	// number. It returns 0 if there are no more, or if the database expires them itself.
	Trim(ctx context.Context, stream string, limit int) (int, error)
}

// AnswerFeed has the streams of inference tasks, with the contract of Feed. An adapter of
// AnswerFeed alone may refuse batches without records and batches with marks. It does not detect
// that a stream is lost while a process writes to it.
type AnswerFeed interface {
	RecordFeed
	// Remove deletes the records, the marks and the head of a stream, which is then empty. It
	// keeps the cursors of consumers. It is idempotent; after an error a part may be left.
	// A process must not append to the stream meanwhile. A Wait at it may return nil.
	Remove(ctx context.Context, stream string) error
}

// RecordFeed is the part of Feed that writes and reads records.
type RecordFeed interface {
	// Head returns the end of a stream.
	Head(ctx context.Context, stream string) (Head, error)
	// Append writes a batch after the position Batch.After and returns the new head. If the
	// stream's newest position differs, the error is a *FeedConflict, which wraps ErrConflict,
	// and nothing is written. Append does not check for known ids. To store no record twice, a
	// writer reads the head, then appends only records that Positions does not return, after
	// that head.
	Append(ctx context.Context, stream string, b Batch) (Head, error)
	// Positions returns the positions, by id, of the records that are stored in the stream. It
	// uses only ID and At of a record.
	Positions(ctx context.Context, stream string, records []FeedRecord) (map[string]int64, error)
	// Read returns at most limit records with positions above after, in order. It returns fewer
	// records if they exceed MaxFeedPage bytes, but at least one if there is any. If the next
	// records have expired, the first returned position is larger than after+1.
	Read(ctx context.Context, stream string, after int64, limit int) ([]FeedRecord, error)
	// Wait returns nil once the newest position of the stream is above after, and the error of
	// ctx when ctx ends. An adapter may poll.
	Wait(ctx context.Context, stream string, after int64) error
}

// The maximum sizes in bytes, and the maximum number of records of a batch.
const (
	MaxFeedName    = 512
	MaxFeedID      = 200
	MaxFeedData    = 128 << 10
	MaxFeedState   = 4 << 10
	MaxFeedMark    = 8 << 10
	MaxFeedRecords = 1000
	// MaxFeedBatch limits the ids and data of a batch, MaxFeedPage the data that Read returns.
	MaxFeedBatch = 256 << 10
	MaxFeedPage  = 1 << 20
)

// EventStreams is the prefix of the streams of events.
const EventStreams = "events/"

// EventStream returns the name of the stream of a tenant's events. The data of its records is a
// DSSE envelope, or an event without one (events.Bare). The id of a record is the ULID of its
// event.
func EventStream(tenant string) string { return EventStreams + tenant }

// Head is the end of a stream.
type Head struct {
	// Epoch identifies the positions of a stream: 1 to 32 characters of [a-z0-9]. If a stream
	// is lost and created again, its epoch changes. It is empty for a stream without a batch.
	Epoch string
	// Oldest and Newest are the first and the last position in the stream. Both are 0 for a
	// stream without records. Oldest is Newest+1 if all records have expired.
	Oldest, Newest int64
	// State is the state of the last batch.
	State []byte
}

// Batch is what one Append writes.
type Batch struct {
	// After is the newest position of the stream, as known to the writer.
	After int64
	// Records get the positions from After+1. There may be no records.
	Records []FeedRecord
	// State replaces the state of the head.
	State []byte
	// Relaxed permits that a crash of the host loses the batch, until a later write of the feed
	// that is not relaxed has returned. The batch is visible at once, and survives the end of
	// the process. An adapter may ignore it.
	Relaxed bool
	// DueAt makes the stream due at that time, unless it is already due. Zero changes nothing.
	DueAt time.Time
	// Mark is stored at the last position of the stream with this batch. It replaces an earlier
	// mark there. nil means no mark. A mark of an empty stream is refused.
	Mark []byte
}

// FeedRecord is a record of a stream.
type FeedRecord struct {
	// Position is set by Read and ignored by Append.
	Position int64
	// ID identifies the record within its stream; it is not empty.
	ID string
	// At is the time of the recorded event, in UTC. The record is appended after it, by a clock
	// that differs by less than a minute.
	At time.Time
	// Data may be any bytes.
	Data []byte
}

// Mark is data that is stored for a position, such as a checkpoint.
type Mark struct {
	Position int64
	Data     []byte
}

// FeedConflict is the error of an Append whose After is not the newest position. It wraps
// ErrConflict.
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

// Size returns the number of bytes of the record that count for MaxFeedBatch.
func (r FeedRecord) Size() int { return len(r.ID) + len(r.Data) }

// Check returns an Internal fault if Append would refuse the batch.
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
