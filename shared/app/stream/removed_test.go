package stream_test

import (
	"context"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// aging is a feed whose events are removed after its head was read and before they are read.
type aging struct {
	*counted

	age func()
}

func (a *aging) Read(ctx context.Context, name string, after int64, limit int) ([]port.FeedRecord, error) {
	if a.age != nil {
		a.age()
		a.age = nil
	}
	return a.counted.Read(ctx, name, after, limit)
}

// TestRemovedEventsEndAPage removes the events after a cursor while they are read. The page
// must be refused: it must neither continue with later events nor end at the cursor.
func TestRemovedEventsEndAPage(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]time.Duration{"some": retention/2 + time.Second, "all": retention + time.Second} {
		b := setup(t, settings)
		b.add(t, 5, eventtype.Queued)
		b.clock.Advance(retention / 2)
		b.add(t, 5, eventtype.Queued)
		feed := &aging{b.feed, func() { b.clock.Advance(age) }}
		streams := stream.New(feed, b.clock, nil, nil, settings)
		at := stream.Cursor{Epoch: b.Cursor().Epoch, Position: 2}
		p, err := streams.Page(t.Context(), who, stream.PageQuery{After: at.String(), Limit: 100})
		if !fault.Is(err, fault.CursorExpired) {
			t.Errorf("%s removed: got the events %v, %v, want CursorExpired", name, positions(p.Events), err)
		}
	}
}

// TestRemovedEventsEndAReader removes events that a slow reader has not received. Its stream
// must end without a later event, and the reader must get a gap when it reconnects.
func TestRemovedEventsEndAReader(t *testing.T) {
	t.Parallel()
	b := setup(t, stream.Config{Life: 4 * retention, Readers: 2})
	b.add(t, 2, eventtype.Queued)
	f := b.follow(t, stream.Query{After: stream.Latest})
	f.next(t)
	asked := b.Cursor()
	b.feed.hold()
	b.add(t, 5, eventtype.Queued)
	b.clock.Advance(retention + time.Second)
	b.add(t, 5, eventtype.Queued)
	b.feed.release()
	for {
		got := f.next(t)
		if len(got.Events) > 0 {
			t.Fatalf("got the events %v behind %s, want the end of the stream", positions(got.Events), asked)
		}
		if got.End {
			break
		}
	}
	f.end(t)
	again := b.follow(t, stream.Query{After: asked.String()})
	if first := again.next(t); first.Gap == nil || first.Gap.Oldest.Position != 8 {
		t.Errorf("got %+v, want the gap up to the event 8", first)
	}
}

// TestRemovedEventsEndAConnection tests the same with a connection that a gateway keeps open.
func TestRemovedEventsEndAConnection(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.grow(t, 2, eventtype.Queued)
	g.open(t, "a", stream.Latest)
	g.push(t)
	g.got(t, "a", "cursor 2")
	g.add(t, 5, eventtype.Queued)
	g.clock.Advance(retention + time.Second)
	g.grow(t, 5, eventtype.Queued)
	g.got(t, "a", "end 3s at 2")
	if g.sockets.Open("a") {
		t.Error("got an open connection, want it closed")
	}
}
