package answer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Streams reads and writes the streams of inference tasks in a feed. It is safe for concurrent
// use, by any number of processes.
type Streams struct {
	feed  port.AnswerFeed
	clock clock.Clock
	hex   func(n int) string
}

// NewStreams returns the streams in a feed. hex returns n random bytes in hexadecimal.
func NewStreams(feed port.AnswerFeed, c clock.Clock, hex func(n int) string) *Streams {
	return &Streams{feed, c, hex}
}

// Read returns the head of the stream of a run, and the decoded state of the head.
func (s *Streams) Read(ctx context.Context, r run.Run) (port.Head, inference.State, error) {
	head, err := s.feed.Head(ctx, inference.StreamOf(r.Tenant, r.TaskID))
	if err != nil {
		return head, inference.State{}, fmt.Errorf("cannot read the stream of the task: %w", err)
	}
	state, err := inference.DecodeState(head.State)
	return head, state, err
}

// Last returns the last record of a stream that has ended.
func (s *Streams) Last(ctx context.Context, r run.Run, head port.Head) (inference.Record, error) {
	found, err := s.feed.Read(ctx, inference.StreamOf(r.Tenant, r.TaskID), head.Newest-1, 1)
	if err != nil {
		return inference.Record{}, fmt.Errorf("cannot read the end of the stream of the task: %w", err)
	}
	if len(found) == 0 {
		return inference.Record{}, fault.New(fault.Internal, "the end of the stream of task %s has expired before the task", r.TaskID)
	}
	return inference.Decode(found[0].Data)
}

// Conclude appends records, the last of which ends the stream. It returns the record that ends
// the stream: an earlier one if the stream had already ended. If a newer attempt has written to
// the stream, it appends only the last record.
func (s *Streams) Conclude(ctx context.Context, r run.Run, records ...inference.Record) (inference.Record, error) {
	writer := "end-" + s.hex(8)
	for range port.CommitTries {
		head, state, err := s.Read(ctx, r)
		if err != nil {
			return inference.Record{}, err
		}
		if state.Ended {
			return s.Last(ctx, r, head)
		}
		// The tokens of a replaced attempt would not follow those of the newer attempt.
		if state.Attempt > records[len(records)-1].Attempt {
			records = records[len(records)-1:]
		}
		last := &records[len(records)-1]
		if last.Error != nil {
			ended := *last.Error
			ended.TokensOut = max(ended.TokensOut, state.Tokens(r.Work.Inference.MaxTokens))
			last.Error = &ended
		}
		_, err = s.append(ctx, appendTarget{stream: inference.StreamOf(r.Tenant, r.TaskID), after: head.Newest, writer: writer}, state, records...)
		if err == nil {
			return *last, nil
		}
		if !errors.Is(err, port.ErrConflict) {
			return inference.Record{}, err
		}
	}
	return inference.Record{}, fault.New(fault.Unavailable, "too many concurrent changes of the stream of task %s; retry", r.TaskID)
}

// appendTarget is the target of an append: a stream and its newest position. writer is the
// prefix of the record ids.
type appendTarget struct {
	stream, writer string
	after          int64
	// relaxed is port.Batch.Relaxed.
	relaxed bool
}

// append appends records, and returns the state after them. The error is port.ErrConflict if
// the stream has another newest position.
func (s *Streams) append(ctx context.Context, to appendTarget, state inference.State, records ...inference.Record) (inference.State, error) {
	b := port.Batch{After: to.after, Relaxed: to.relaxed, Records: make([]port.FeedRecord, len(records))}
	for i, record := range records {
		state = state.After(record)
		data, err := json.Marshal(record)
		if err != nil {
			return state, fmt.Errorf("cannot encode a record: %w", err)
		}
		b.Records[i] = port.FeedRecord{ID: to.writer + "." + strconv.FormatInt(to.after+1+int64(i), 10), At: s.clock.Now().UTC(), Data: data}
	}
	var err error
	if b.State, err = json.Marshal(state); err != nil {
		return state, fmt.Errorf("cannot encode the state of a stream: %w", err)
	}
	if err := s.write(ctx, to.stream, b); err != nil {
		return state, fmt.Errorf("cannot append to the stream of the task: %w", err)
	}
	return state, nil
}

// writeTries is the maximum number of tries of an append whose result is unknown.
const writeTries = 3

// write appends a batch. After a failed try it reads the feed to find out whether the batch was
// appended.
func (s *Streams) write(ctx context.Context, stream string, b port.Batch) error {
	var err error
	for try := range writeTries {
		if _, err = s.feed.Append(ctx, stream, b); err == nil {
			return nil
		}
		if try > 0 || !errors.Is(err, port.ErrConflict) { // a first try that lost a race appended nothing
			last := b.Records[len(b.Records)-1]
			known, read := s.feed.Positions(ctx, stream, []port.FeedRecord{last})
			if read == nil && known[last.ID] == b.After+int64(len(b.Records)) {
				return nil
			}
		}
		if errors.Is(err, port.ErrConflict) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// keepalive is the time without an event after which a reader gets an empty batch.
const keepalive = 15 * time.Second

// readPage is the number of records that a reader reads at a time.
const readPage = 200

// idleEvery is the minimum time between two calls of Reader.Idle.
const idleEvery = time.Second

// Reader has the callbacks of Streams.Follow for one reader.
type Reader struct {
	// Follow calls Idle before it waits for records, at most once a second. IdleAt is the time of
	// the last call, zero before the first one. Idle may end the stream.
	IdleAt time.Time
	Idle   func(ctx context.Context) error
	// Settled waits, after the stream has ended, until its run holds no part of its budgets.
	Settled func(ctx context.Context) error
	// Each gets the events.
	Each func([]inference.Event) error
}

// Follow calls Each with the events of a stream after an id, in order. It calls Settled before
// it delivers the last event, and then returns. It calls Each with nil after every 15 s without
// an event.
func (s *Streams) Follow(ctx context.Context, stream string, after inference.EventID, f *Reader) error {
	read := max(after.Position-1, 0)
	for {
		last, full, ended, err := s.deliver(ctx, stream, read, after, f)
		if err != nil || ended {
			return err
		}
		if read = last; full {
			continue
		}
		if now := s.clock.Now(); f.IdleAt.IsZero() || now.Sub(f.IdleAt) >= idleEvery {
			if err := f.Idle(ctx); err != nil {
				return err
			}
			f.IdleAt = now
		}
		waited, err := s.wait(ctx, stream, read)
		if err != nil {
			return err
		}
		if !waited {
			if err := f.Each(nil); err != nil {
				return err
			}
		}
	}
}

// deliver reads the page of records behind the position read, and calls Each with their events
// after the id after, if there are any. last is the position of the last record of the page.
// full reports that the page was full, ended that the stream has ended.
func (s *Streams) deliver(
	ctx context.Context, stream string, read int64, after inference.EventID, f *Reader,
) (last int64, full, ended bool, err error) {
	records, err := s.feed.Read(ctx, stream, read, readPage)
	if err != nil {
		return read, false, false, fmt.Errorf("cannot read the stream of the task: %w", err)
	}
	var events []inference.Event
	for _, found := range records {
		record, err := inference.Decode(found.Data)
		if err != nil {
			return read, false, false, err
		}
		if record.Ends() {
			if err := f.beforeEnd(ctx, events); err != nil {
				return read, false, false, err
			}
			return found.Position, false, true, f.Each(record.Events(found.Position, after))
		}
		events = append(events, record.Events(found.Position, after)...)
		read = found.Position
	}
	if len(events) > 0 {
		err = f.Each(events)
	}
	return read, len(records) == readPage, false, err
}

// beforeEnd calls Each with the events before the last one, if there are any, and then calls
// Settled.
func (f *Reader) beforeEnd(ctx context.Context, events []inference.Event) error {
	if len(events) > 0 {
		if err := f.Each(events); err != nil {
			return err
		}
	}
	return f.Settled(ctx)
}

// wait waits for a record behind a position of the stream. It returns false after a keepalive.
func (s *Streams) wait(ctx context.Context, stream string, after int64) (more bool, err error) {
	waiting, stop := clock.WithTimeout(ctx, s.clock, keepalive)
	defer stop()
	err = s.feed.Wait(waiting, stream, after)
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case waiting.Err() != nil:
		return false, nil
	}
	return false, fmt.Errorf("cannot wait for the stream of the task: %w", err)
}

// Transcript returns the whole answer in the stream of a run.
func (s *Streams) Transcript(ctx context.Context, r run.Run) (text inference.Transcript, err error) {
	stream := inference.StreamOf(r.Tenant, r.TaskID)
	for after := int64(0); ; {
		found, err := s.feed.Read(ctx, stream, after, readPage)
		if err != nil {
			return text, fmt.Errorf("cannot read the stream of the task: %w", err)
		}
		for _, each := range found {
			record, err := inference.Decode(each.Data)
			if err != nil {
				return text, err
			}
			text.Add(record)
			after = each.Position
		}
		if len(found) == 0 {
			return text, nil
		}
	}
}
