package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// The time limits of readers.
const (
	// CursorInterval is the longest time without a message to a reader.
	CursorInterval = 15 * time.Second
	// RefusedRetry is the time after which a refused reader reconnects.
	RefusedRetry = 5 * time.Second

	// A reader whose stream has ended reconnects after a random time between these.
	retryLeast, retryMost = time.Second, 5 * time.Second
	// deadlineMargin is the part of a request's time that is reserved to end its stream.
	deadlineMargin = 5 * time.Second
)

// Query selects the events that a reader follows.
type Query struct {
	// After is a cursor, Earliest or Latest. Parameter is its name in errors.
	After, Parameter string
	Filter           events.Filter
	// FailOnGap refuses a cursor that the stream does not have.
	FailOnGap bool
	// Transport is the kind of the reader's connection, for the metrics.
	Transport series.Transport
}

// Gap is reported for a cursor that the stream does not have.
type Gap struct {
	// Asked is the cursor of the reader. Oldest and Newest are the cursors of the first and the
	// last event in the stream.
	Asked, Oldest, Newest Cursor
}

// Batch is one delivery to a reader, in the order of the fields.
type Batch struct {
	// Retry is the time after which the reader reconnects; 0 leaves it unchanged.
	Retry time.Duration
	Gap   *Gap
	// Events all have the epoch of Cursor. The receiver must not change the slice.
	Events []*Event
	// Cursor is the place of the reader after the batch.
	Cursor Cursor
	// End: the stream ends with this batch.
	End bool
}

// NewReader returns a reader that follows the events of the caller's tenant from the place of
// the query. The caller must call Follow once. If the tenant has too many open streams, Follow
// sends one batch, with the place and End. The errors are those of Page.
func (s *Streams) NewReader(ctx context.Context, who port.Identity, q Query) (*Reader, error) {
	from, err := parsePlace(q.After, q.Parameter)
	if err != nil {
		return nil, err
	}
	leave, ok, err := s.enter(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	name := port.EventStream(who.Tenant)
	first, head, err := s.place(ctx, name, from, q)
	if !ok {
		s.config.Record(ctx, series.Count(series.ReadersRefused, 1, string(q.Transport)))
		first.Retry, first.End = RefusedRetry, true
		return &Reader{Streams: s, first: first}, err
	}
	if err != nil {
		leave()
		return nil, err
	}
	return &Reader{
		Streams: s, name: name, filter: q.Filter, transport: q.Transport, at: first.Cursor, first: first, topic: s.topics.join(name, head), leave: leave,
	}, nil
}

// place returns the first batch of a reader, with the place of its query.
func (s *Streams) place(ctx context.Context, name string, from place, q Query) (first Batch, head port.Head, err error) {
	if head, err = s.head(ctx, name); err != nil {
		return first, head, fmt.Errorf("cannot read the end of the stream: %w", err)
	}
	at, ok := from.in(head)
	if !ok && q.FailOnGap {
		return first, head, expired(head)
	}
	first = Batch{Cursor: at, Retry: s.retry()}
	if !ok {
		first.Gap = &Gap{from.cursor, oldest(head), Cursor{head.Epoch, head.Newest}}
	}
	return first, head, nil
}

// head reads the end of a stream in its own goroutine. Otherwise the stack that the database
// needs would stay with the caller as long as the reader exists.
func (s *Streams) head(ctx context.Context, name string) (head port.Head, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		head, err = s.feed.Head(ctx, name)
	}()
	<-done
	return head, err
}

// Follow sends the events as the stream grows, until the stream's time has passed, the process
// ends or send fails. It calls send once at the start, with the cursor, and at least once in
// each CursorInterval. A send that blocks delays only its own reader.
func (r *Reader) Follow(ctx context.Context, send func(Batch) error) {
	r.send = send
	if r.leave == nil {
		_ = send(r.first) // the reader may have disconnected
		return
	}
	defer r.end()
	r.open.add(r.transport, 1)
	why, err := r.follow(ctx)
	if err == nil {
		_ = send(Batch{Cursor: r.at, Retry: r.retry(), End: true}) // the reader may have disconnected
	}
	r.config.Record(ctx, series.Count(series.ReadersEnded, 1, string(r.transport), string(why)))
}

// end releases the resources that NewReader has acquired.
func (r *Reader) end() {
	r.open.add(r.transport, -1)
	r.topics.leave(r.name, r.topic)
	r.leave()
}

// retry returns a random time, so that readers whose streams end together do not reconnect
// together.
func (s *Streams) retry() time.Duration { return randomRetry(s.random) }

func randomRetry(random func() float64) time.Duration {
	return retryLeast + time.Duration(random()*float64(retryMost-retryLeast))
}

// life returns the duration of one stream.
func (s *Streams) life(ctx context.Context) time.Duration {
	const share = 7
	life := s.config.Life - time.Duration(s.random()*float64(s.config.Life)/share)
	if deadline, ok := ctx.Deadline(); ok {
		life = min(life, deadline.Sub(s.clock.Now())-deadlineMargin)
	}
	return life
}

// Reader follows the events of a tenant. Streams.NewReader creates it.
type Reader struct {
	*Streams

	name  string
	topic *topic
	// leave releases the seat; nil without a seat.
	leave     func()
	first     Batch
	filter    events.Filter
	transport series.Transport
	send      func(Batch) error
	at        Cursor
	sent      time.Time
	bytes     int64
}

// ready is a closed channel: the stream has further events.
var ready = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// ErrSlow is returned by a send to a reader that was disconnected because it did not read.
var ErrSlow = errors.New("the reader does not read")

// broken returns why a stream has ended after its send failed.
func broken(err error) series.End {
	if errors.Is(err, ErrSlow) {
		return series.EndSlow
	}
	return series.EndGone
}

// follow sends the first batch, and then events until the stream must end. The error is that of
// send.
func (r *Reader) follow(ctx context.Context) (why series.End, err error) {
	over, stopLife := r.clock.NewTimer(r.life(ctx))
	defer stopLife()
	idleOver, stopIdle := r.clock.NewTimer(CursorInterval)
	defer func() { stopIdle() }()
	if err := r.give(ctx, r.first); err != nil {
		return broken(err), err
	}
	for {
		head, changed := r.topic.current()
		if r.at.Epoch == "" { // the stream was empty
			r.at.Epoch = head.Epoch
		}
		if r.at.Epoch != head.Epoch {
			return series.EndLost, nil
		}
		if r.config.Bytes > 0 && r.bytes >= r.config.Bytes {
			return series.EndSize, nil
		}
		if r.at.Position < head.Newest {
			changed = ready
		}
		select {
		case <-ctx.Done():
			return series.EndGone, nil
		case <-r.seats.closing:
			return series.EndShutdown, nil
		case <-over:
			return series.EndLifetime, nil
		case <-idleOver:
			idle := r.clock.Now().Sub(r.sent)
			if idle < CursorInterval {
				idleOver, stopIdle = r.clock.NewTimer(CursorInterval - idle)
				continue
			}
			idleOver, stopIdle = r.clock.NewTimer(CursorInterval)
			if err := r.give(ctx, Batch{Cursor: r.at}); err != nil {
				return broken(err), err
			}
		case <-changed:
			ended, err := r.next(ctx, head.Newest)
			switch {
			case err != nil:
				return broken(err), err
			case ended:
				return series.EndLost, nil
			}
		}
	}
}

// next sends the next events up to newest. ended reports that the stream cannot continue: the
// reader must reconnect, and gets a gap if events were removed. The error is that of send.
func (r *Reader) next(ctx context.Context, newest int64) (ended bool, err error) {
	if r.at.Position >= newest {
		return false, nil
	}
	found, last, err := r.cache.after(ctx, r.name, r.at, newest)
	if err != nil {
		if ctx.Err() == nil {
			r.log.WarnContext(ctx, "a stream of events ends", "stream", r.name, "cursor", r.at.String(), "error", err.Error())
		}
		return true, nil
	}
	if removed(found, r.at) {
		return true, nil
	}
	r.at.Position = last
	selected := found
	if !r.filter.All() || !readable(found) {
		selected = nil
		for _, e := range found {
			if e.selected(r.filter) {
				selected = append(selected, e)
			}
		}
	}
	if len(selected) == 0 {
		return false, nil
	}
	return false, r.give(ctx, Batch{Events: selected, Cursor: r.at})
}

// readable reports whether all events have an envelope.
func readable(found []*Event) bool {
	for _, e := range found {
		if len(e.Plain) == 0 {
			return false
		}
	}
	return true
}

// give sends a batch and counts it.
func (r *Reader) give(ctx context.Context, b Batch) error {
	for _, e := range b.Events {
		r.bytes += int64(len(e.Plain))
	}
	r.sent = r.clock.Now()
	if err := r.send(b); err != nil || len(b.Events) == 0 {
		return err
	}
	r.config.Record(ctx, series.Count(series.EventsSent, len(b.Events), string(r.transport)))
	return nil
}
