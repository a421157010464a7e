package stream_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestNoEventIsLost lets calls fail, applied or not applied. Each open reader must get each
// event, in order. A message that was sent before a failure may be repeated.
func TestNoEventIsLost(t *testing.T) {
	t.Parallel()
	complete := 0
	for seed := range uint64(20) {
		g := newGateway(t, fake.Seeded(seed, 0.1), fake.Seeded(seed+100, 0.1))
		for _, id := range []string{"a", "b"} {
			opened := g.reception.Open(t.Context(), who, stream.Query{After: "0"}, id)
			for opened != nil { // the client retries
				opened = g.reception.Open(t.Context(), who, stream.Query{After: "0"}, id)
			}
			g.sockets.Connect(id)
		}
		next := map[string]int64{"a": 1, "b": 1}
		for i := range 40 {
			if i < 30 {
				g.add(t, 3, eventtype.Queued)
				g.waker.DispatchTenants(t.Context(), []string{tenant})
			}
			if i%2 == 0 || i >= 30 {
				g.clock.Advance(stream.SweepInterval)
				_ = g.waker.Sweep(t.Context())
			}
			for _, tenant := range g.pushes.Take() {
				for range 4 { // the queue retries
					if g.pusher.Push(t.Context(), tenant) == nil {
						break
					}
				}
			}
			for id := range next {
				for _, m := range g.sockets.Sent(id) {
					n, err := strconv.ParseInt(m, 10, 64)
					if err != nil {
						continue
					}
					if n > next[id] {
						t.Fatalf("seed %d, %s: got the event %d, want %d first", seed, id, n, next[id])
					}
					if n == next[id] {
						next[id]++
					}
				}
			}
		}
		for id, n := range next {
			if open := g.sockets.Open(id); open && n != 91 {
				t.Errorf("seed %d, %s: got the events before %d, want all 90", seed, id, n)
			} else if open {
				complete++
			}
		}
	}
	if complete < 20 {
		t.Errorf("got %d readers with all events, want at least half", complete)
	}
}

func TestUnreachableReaderIsCutOff(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c fake.Call) fake.Fate {
		if c.Method == "Send" && c.Subject == "a" {
			return fake.Lost
		}
		return fake.Applied
	}, nil)
	g.open(t, "a", "0")
	g.open(t, "b", "0")
	for i := range int64(3) {
		if !g.sockets.Open("a") {
			t.Errorf("got the reader cut off after %d failures, want 3", i)
		}
		g.grow(t, 1, eventtype.Queued)
	}
	if g.sockets.Open("a") || !slices.Equal(g.sockets.Sent("b"), []string{"cursor 0", "1", "2", "3"}) {
		t.Error("got the unreachable reader open or the other one delayed")
	}
}

// TestConcurrentPushes: the queue delivers pushes of a tenant one after another. If pushes run
// concurrently, a reader may get messages twice, but loses none.
func TestConcurrentPushes(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.open(t, "a", "0")
	g.push(t)
	g.add(t, 120, eventtype.Queued)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := g.pusher.Push(t.Context(), tenant); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	g.grow(t, 1, eventtype.Queued)
	sent := g.sockets.Sent("a")
	for _, want := range texts(1, 121) {
		if !slices.Contains(sent, want) {
			t.Errorf("got no event %s, want it", want)
		}
	}
}

// TestSocketQuotas compares sizes and times with the quotas of the gateway.
func TestSocketQuotas(t *testing.T) {
	t.Parallel()
	const base64 = 4 // characters for three bytes
	// The record of an event contains its envelope in base64.
	if longest := port.MaxFeedData/base64*3 + 1<<10; longest > stream.SocketMessage {
		t.Errorf("got messages of up to %d bytes, want at most %d", longest, stream.SocketMessage)
	}
	if stream.SocketLife != 2*time.Hour || stream.SocketIdle != 10*time.Minute || stream.SocketFrame != 32<<10 || stream.SocketRate != 500 {
		t.Error("got other quotas than those of a WebSocket API")
	}
	w, err := streamtest.New(fake.NewFeed(clock.NewVirtual(epoch), retention, nil, func(err error) { t.Error(err) }), tenant, clock.NewVirtual(epoch))
	if err != nil {
		t.Fatal(err)
	}
	if w.Message = strings.Repeat("x", port.MaxFeedData); w.Add(t.Context(), false, eventtype.Queued) == nil {
		t.Error("got a record that is larger than the feed's limit, want an error")
	}
}
