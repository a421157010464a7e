package stream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// ended checks the number of ended streams for each reason.
func (b *bench) ended(t *testing.T, transport series.Transport, want map[series.End]float64) {
	t.Helper()
	for _, reason := range series.LabelValues(series.ReadersEnded, "reason") {
		if got := b.tally.Of(series.ReadersEnded, string(transport), reason); got != want[series.End(reason)] {
			t.Errorf("got %v streams of %s that ended by %s, want %v", got, transport, reason, want[series.End(reason)])
		}
	}
}

// open checks the numbers of readers.
func (b *bench) open(t *testing.T, sse, webSockets float64) {
	t.Helper()
	got, err := b.streams.Open(t.Context())
	want := []series.Sample{{Name: series.Readers, Value: sse, Labels: []string{"sse"}}, {Name: series.Readers, Value: webSockets, Labels: []string{"websocket"}}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got readers %v, %v, want %v", got, err, want)
	}
}

func TestReadersAreCounted(t *testing.T) {
	t.Parallel()
	config := settings
	config.Readers, config.Bytes = 3, 1
	b := setup(t, config)
	first := b.follow(t, stream.Query{After: stream.Latest})
	first.next(t)
	other := b.follow(t, stream.Query{After: stream.Latest, Transport: series.WebSocket})
	other.next(t)
	slow := make(chan error, 1)
	go func() {
		slow <- follow(t.Context(), b.streams, who, stream.Query{After: stream.Latest, Transport: series.WebSocket}, func(got stream.Batch) error {
			if len(got.Events) > 0 {
				return fmt.Errorf("cut off: %w", stream.ErrSlow)
			}
			slow <- nil
			return nil
		})
	}()
	if err := <-slow; err != nil {
		t.Fatal(err)
	}
	b.open(t, 1, 2)
	refused := b.follow(t, stream.Query{After: stream.Latest, Transport: series.WebSocket})
	refused.next(t)
	refused.end(t)
	if got := b.tally.Of(series.ReadersRefused, "websocket"); got != 1 {
		t.Errorf("got %v refused readers, want 1", got)
	}
	other.leave() // before there are events, which would end it by their size
	for ended := false; !ended; {
		select {
		case <-other.batches: // batches before it notices the end
		case <-other.ended:
			ended = true
		}
	}
	b.add(t, 2, eventtype.Queued)
	if err := <-slow; err != nil {
		t.Error(err)
	}
	first.next(t)
	if last := first.next(t); !last.End {
		t.Errorf("got %+v behind the permitted bytes, want the end", last)
	}
	first.end(t)
	b.open(t, 0, 0)
	b.ended(t, series.SSE, map[series.End]float64{series.EndSize: 1})
	b.ended(t, series.WebSocket, map[series.End]float64{series.EndSlow: 1, series.EndGone: 1})
	if got := b.tally.Of(series.EventsSent, "sse"); got != 2 {
		t.Errorf("got %v events, want the 2 that were written", got)
	}
}

func TestEndsOfStreamsAreCounted(t *testing.T) {
	t.Parallel()
	config := settings
	config.Life = 1e6 * time.Hour // long enough that the other ends come first
	for name, row := range map[series.End]func(b *bench){
		series.EndLifetime: func(b *bench) { b.clock.Advance(config.Life) },
		series.EndShutdown: func(b *bench) { go func() { _ = b.streams.Close(t.Context()) }() },
		series.EndLost: func(b *bench) {
			b.feed.Lose(port.EventStream(tenant))
			again, err := streamtest.New(b.feed, tenant, b.clock)
			if err == nil {
				err = again.Add(t.Context(), false, eventtype.Queued)
			}
			if err != nil {
				t.Error(err)
			}
		},
	} {
		b := setup(t, config)
		b.add(t, 1, eventtype.Queued)
		f := b.follow(t, stream.Query{After: stream.Latest})
		f.next(t)
		row(b)
		for {
			b.clock.Advance(stream.CursorInterval)
			if got := f.next(t); got.End {
				break
			}
		}
		f.end(t)
		b.ended(t, series.SSE, map[series.End]float64{name: 1})
	}
}

func TestConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for _, id := range []string{"a", "b", "refused"} {
		g.open(t, id, stream.Latest)
	}
	if got, err := stream.OpenConnections(g.connections)(t.Context()); err != nil || len(got) != 1 || got[0].Value != 2 || got[0].Labels[0] != "websocket" {
		t.Errorf("got %v, %v, want 2 readers of WebSockets", got, err)
	}
	g.push(t)
	g.grow(t, 3, eventtype.Queued)
	if err := g.reception.Leave(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	g.clock.Advance(stream.SocketLife)
	g.grow(t, 1, eventtype.Queued)
	if sent, refused := g.tally.Of(series.EventsSent, "websocket"), g.tally.Of(series.ReadersRefused, "websocket"); sent != 6 || refused != 1 {
		t.Errorf("got %v events and %v refused readers, want 6 and 1", sent, refused)
	}
	g.ended(t, series.WebSocket, map[series.End]float64{series.EndGone: 1, series.EndLifetime: 1})
	if got, err := stream.OpenConnections(g.connections)(t.Context()); err != nil || got[0].Value != 0 {
		t.Errorf("got %v, %v, want no reader", got, err)
	}
}
