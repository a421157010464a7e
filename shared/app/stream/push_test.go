package stream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// gateway is a fake gateway with the components that serve its connections.
type gateway struct {
	*bench

	connections *fake.Connections
	sockets     *fake.Sockets
	pushes      *fake.Pushes
	seats       *fake.Seats
	reception   *stream.Reception
	pusher      *stream.Pusher
	waker       *stream.Waker
	// revoked has the holders whose token is invalid. unknown, if set, is the error of each
	// check.
	revoked map[string]bool
	unknown error
}

// render renders a batch as short texts.
func render(b stream.Batch) (all [][]byte, err error) {
	add := func(format string, args ...any) { all = append(all, fmt.Appendf(nil, format, args...)) }
	for _, e := range b.Events {
		add("%d", e.Position)
	}
	switch {
	case b.End:
		add("end %s at %d", b.Retry, b.Cursor.Position)
	case b.Gap != nil:
		add("gap %d to %d", b.Gap.Oldest.Position, b.Gap.Newest.Position)
	case len(b.Events) == 0:
		add("cursor %d", b.Cursor.Position)
	}
	return all, nil
}

// newGateway returns a gateway whose calls fail as planned. A tenant can have two readers.
func newGateway(t *testing.T, onSockets, onConnections fake.Plan) *gateway {
	t.Helper()
	b := setup(t, settings)
	g := &gateway{
		bench: b, connections: fake.NewConnections(onConnections), sockets: fake.NewSockets(onSockets), pushes: fake.NewPushes(nil),
		seats: fake.NewSeats(b.clock, nil), revoked: map[string]bool{},
	}
	half := func() float64 { return 0.5 }
	g.reception = stream.NewReception(b.feed, g.connections, g.pushes, g.seats, 2, g.tally.Record, b.clock, half)
	g.waker = stream.NewWaker(g.connections, g.pushes, b.clock, slog.New(slog.DiscardHandler), half)
	g.pusher = stream.NewPusher(stream.PusherConfig{
		Feed: b.feed, Connections: g.connections, Sockets: g.sockets, Pushes: g.pushes, Seats: g.seats, Render: render, Record: g.tally.Record,
		Clock: b.clock, Log: slog.New(slog.DiscardHandler), Random: half,
		Holds: func(_ context.Context, in, holder string) (bool, error) {
			return in == tenant && !g.revoked[holder], g.unknown
		},
	})
	return g
}

// open opens a connection at a cursor.
func (g *gateway) open(t *testing.T, id, after string, types ...string) {
	t.Helper()
	q, reader := stream.Query{After: after, Parameter: "after", Filter: events.Filter{Types: types}}, who
	reader.Subject = "holder of " + id
	if err := g.reception.Open(t.Context(), reader, q, id); err != nil {
		t.Fatal(err)
	}
	g.sockets.Connect(id)
}

// push performs queued pushes until the queue is empty.
func (g *gateway) push(t *testing.T) {
	t.Helper()
	for queued := g.pushes.Take(); len(queued) > 0; queued = g.pushes.Take() {
		for _, tenant := range queued {
			if err := g.pusher.Push(t.Context(), tenant); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// grow appends events and pushes them.
func (g *gateway) grow(t *testing.T, n int, kind eventtype.Type) {
	t.Helper()
	g.add(t, n, kind)
	if failed := g.waker.DispatchTenants(t.Context(), []string{tenant}); failed > 0 {
		t.Fatalf("got %d failed tenants, want none", failed)
	}
	g.push(t)
}

// got checks what a reader has received since the last check.
func (g *gateway) got(t *testing.T, id string, want ...string) {
	t.Helper()
	if got := g.sockets.Sent(id); !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", id, got, want)
	}
}

func texts(first, last int64) (all []string) {
	for _, n := range from(first, last) {
		all = append(all, strconv.FormatInt(n, 10))
	}
	return all
}

func TestPushSendsWhatFollowsTheCursor(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.grow(t, 1, eventtype.Accepted)
	g.open(t, "a", stream.Latest)
	g.open(t, "b", stream.Earliest)
	g.push(t)
	g.got(t, "a", "cursor 1")
	g.got(t, "b", "cursor 0", "1")
	g.grow(t, 2, eventtype.Queued)
	g.got(t, "a", "2", "3")
	g.got(t, "b", "2", "3")
	g.grow(t, 300, eventtype.Queued) // more than a round and more than a chunk of the cache
	g.got(t, "a", texts(4, 303)...)
	g.got(t, "b", texts(4, 303)...)
	if err := g.reception.Leave(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if err := g.reception.Leave(t.Context(), "a"); err != nil {
		t.Errorf("got %v for an unknown connection, want nil", err)
	}
	g.grow(t, 1, eventtype.Failed)
	g.got(t, "a")
	g.got(t, "b", "304")
	if err := g.reception.Leave(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	g.add(t, 1, eventtype.Failed)
	if failed := g.waker.DispatchTenants(t.Context(), []string{tenant}); failed > 0 || len(g.pushes.Take()) > 0 {
		t.Error("got a push for a tenant without readers, want none")
	}
}

func TestFilteredReaderIsKeptAlive(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.open(t, "a", "0", "job.failed")
	g.push(t)
	g.got(t, "a", "cursor 0")
	g.grow(t, 400, eventtype.Queued)
	g.got(t, "a")
	g.grow(t, 1, eventtype.Failed)
	g.grow(t, 1, eventtype.Queued)
	g.got(t, "a", "401")
	for range 2 {
		quiet := time.Duration(0)
		for sent := []string(nil); len(sent) == 0; quiet += stream.SweepInterval {
			if quiet >= stream.SocketIdle {
				t.Fatalf("got no message in %s, want the cursor", quiet)
			}
			g.clock.Advance(stream.SweepInterval)
			if err := g.waker.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			g.push(t)
			if sent = g.sockets.Sent("a"); len(sent) > 0 && !slices.Equal(sent, []string{"cursor 402"}) {
				t.Errorf("got %q, want the cursor", sent)
			}
		}
		if quiet != stream.SocketIdle-2*stream.SweepInterval {
			t.Errorf("got the cursor after %s, want it two sweeps before the connection is idle", quiet)
		}
	}
}

func TestReaderOverTheLimitOfConnections(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for _, id := range []string{"a", "b", "c"} {
		g.open(t, id, "0")
	}
	g.push(t)
	g.got(t, "b", "cursor 0")
	g.got(t, "c", "end 5s at 0")
	if g.sockets.Open("c") || !g.sockets.Open("b") {
		t.Error("got the third connection open, want it closed, and the others open")
	}
	if err := g.reception.Leave(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	g.open(t, "d", "0")
	g.push(t)
	g.got(t, "d", "cursor 0")
}

func TestConnectionsEnd(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.open(t, "a", "0")
	g.grow(t, 1, eventtype.Queued)
	g.got(t, "a", "cursor 0", "1")
	for life := stream.SweepInterval; ; life += stream.SweepInterval {
		g.clock.Advance(stream.SweepInterval)
		if err := g.waker.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.push(t)
		sent := g.sockets.Sent("a")
		if g.sockets.Open("a") {
			continue
		}
		if want := []string{"end 3s at 1"}; !slices.Equal(sent, want) || life < stream.SocketLife*6/7-5*time.Minute || life > stream.SocketLife-2*stream.SweepInterval {
			t.Errorf("got %q after %s, want %q in the last seventh", sent, life, want)
		}
		break
	}
	if found, err := g.connections.LoadConnections(t.Context(), tenant, "", 9); len(found) > 0 || err != nil {
		t.Errorf("got %v, %v, want no connection", found, err)
	}
	g.open(t, "b", "0")
	g.open(t, "c", "0")
	g.push(t)
	g.got(t, "c", "cursor 1") // the seat is free again, and the event has expired
}

func TestConnectionBeginsWithAGap(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.add(t, 2, eventtype.Queued)
	g.open(t, "a", "other-7")
	g.push(t)
	g.got(t, "a", "gap 1 to 2", "1", "2")
	err := g.reception.Open(t.Context(), who, stream.Query{After: "other-7", FailOnGap: true}, "b")
	if !fault.Is(err, fault.CursorExpired) {
		t.Errorf("got %v with gap=fail, want CursorExpired", err)
	}
	if err := g.reception.Open(t.Context(), who, stream.Query{After: "x", Parameter: "after"}, "b"); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("got %v for a malformed cursor, want InvalidRequest", err)
	}
}

// TestRevokedTokenEndsItsConnections revokes the token of one of two readers. That reader must
// get no further event, and the next push or sweep must disconnect it.
func TestRevokedTokenEndsItsConnections(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.open(t, "a", stream.Latest)
	g.open(t, "b", stream.Latest)
	g.push(t)
	g.got(t, "a", "cursor 0")
	g.got(t, "b", "cursor 0")
	g.revoked["holder of a"], g.unknown = true, errors.New("the tokens cannot be read")
	g.grow(t, 1, eventtype.Queued)
	g.got(t, "a", "1")
	g.unknown = nil
	g.grow(t, 1, eventtype.Queued)
	g.got(t, "a")
	g.got(t, "b", "1", "2")
	if g.sockets.Open("a") || !g.sockets.Open("b") {
		t.Error("got another connection closed, want that of the revoked token")
	}
	g.revoked["holder of b"] = true
	g.clock.Advance(stream.SweepInterval)
	if err := g.waker.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.push(t)
	if g.got(t, "b"); g.sockets.Open("b") {
		t.Error("got an idle connection open after a sweep, want it closed")
	}
}

func TestGoneConnectionIsForgotten(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.open(t, "a", "0")
	g.push(t)
	if err := g.sockets.Disconnect(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	g.grow(t, 1, eventtype.Queued)
	if ok, err := g.connections.Connected(t.Context(), tenant); ok || err != nil {
		t.Errorf("got %t, %v, want the connection forgotten", ok, err)
	}
}

// TestPushWaitsForTheHandshake: a push may come before the handshake of a connection is
// complete.
func TestPushWaitsForTheHandshake(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for _, id := range []string{"a", "never"} {
		if err := g.reception.Open(t.Context(), who, stream.Query{After: "0"}, id); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() {
		err := g.pusher.Push(t.Context(), tenant)
		for err == nil && len(g.pushes.Take()) > 1 {
			err = g.pusher.Push(t.Context(), tenant)
		}
		done <- err
	}()
	for rounds := 0; ; {
		if _, waiting := g.clock.Next(); waiting {
			if rounds++; rounds == 3 {
				g.sockets.Connect("a")
			}
			g.clock.Advance(100 * time.Millisecond)
			continue
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		default:
			continue
		}
		break
	}
	g.got(t, "a", "cursor 0")
	g.clock.Advance(10 * time.Second)
	g.pushes.Take()
	if err := g.waker.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.push(t)
	if found, err := g.connections.LoadConnections(t.Context(), tenant, "", 9); len(found) != 1 || err != nil {
		t.Errorf("got %v, %v, want the connection without a handshake forgotten", found, err)
	}
}
