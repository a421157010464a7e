package stream_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestFollowBeginsAtItsCursor(t *testing.T) {
	t.Parallel()
	for after, want := range map[string][]int64{stream.Earliest: from(1, 6), "the third": from(4, 6), stream.Latest: from(6, 6)} {
		b := setup(t, settings)
		b.add(t, 5, eventtype.Queued)
		if after == "the third" {
			after = stream.Cursor{Epoch: b.Cursor().Epoch, Position: 3}.String()
		}
		f := b.follow(t, stream.Query{After: after})
		first := f.next(t)
		if first.Gap != nil || first.Retry < time.Second || first.Retry > 5*time.Second || first.Cursor.Position != want[0]-1 {
			t.Errorf("%s: got the first batch %+v, want the cursor before %d and a retry of 1 to 5 s", after, first, want[0])
		}
		b.add(t, 1, eventtype.Queued)
		var got []int64
		for len(got) < len(want) {
			got = append(got, positions(f.next(t).Events)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", after, got, want)
		}
	}
}

// TestFollowOfAnEmptyStream: a reader of an empty stream gets its first event.
func TestFollowOfAnEmptyStream(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	f := b.follow(t, stream.Query{After: stream.Latest})
	if first := f.next(t); first.Cursor.String() != "0" {
		t.Errorf("got the cursor %s of an empty stream, want 0", first.Cursor)
	}
	b.add(t, 1, eventtype.Accepted)
	if got := f.next(t); len(got.Events) != 1 || got.Cursor != b.Cursor() {
		t.Errorf("got %+v, want the first event at %s", got, b.Cursor())
	}
}

func TestGapIsTheFirstEvent(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, 5, eventtype.Queued)
	own := b.Cursor().Epoch
	b.clock.Advance(retention / 2)
	b.add(t, 5, eventtype.Queued)
	b.clock.Advance(retention/2 + time.Second)
	at := func(n int64) stream.Cursor { return stream.Cursor{Epoch: own, Position: n} }
	for name, asked := range map[string]stream.Cursor{"a passed window": at(2), "an unknown cursor": at(11), "another epoch": {Epoch: "other", Position: 7}} {
		f := b.follow(t, stream.Query{After: asked.String()})
		want := stream.Gap{Asked: asked, Oldest: at(6), Newest: at(10)}
		if first := f.next(t); first.Gap == nil || *first.Gap != want || first.Cursor != at(5) {
			t.Errorf("%s: got %+v, want the gap %+v and the cursor %s", name, first, want, at(5))
		}
		if got := f.next(t); !slices.Equal(positions(got.Events), from(6, 10)) {
			t.Errorf("%s: got %v after the gap, want the oldest events", name, positions(got.Events))
		}
		f.leave()
		err := follow(t.Context(), b.streams, who, stream.Query{After: asked.String(), FailOnGap: true}, func(stream.Batch) error {
			t.Errorf("%s: got a batch, want an error", name)
			return nil
		})
		if !fault.Is(err, fault.CursorExpired) || !strings.Contains(err.Error(), at(6).String()) {
			t.Errorf("%s: got %v, want CursorExpired with the oldest cursor", name, err)
		}
	}
	err := follow(t.Context(), b.streams, who, stream.Query{After: "x", Parameter: "Last-Event-ID"}, nil)
	if f := fault.Of(err); f.Code != fault.InvalidRequest || f.Field != "Last-Event-ID" {
		t.Errorf("got %v for a malformed cursor, want one that names the parameter", err)
	}
}

// TestCursorMovesWithoutEvents: the cursor of a filtered reader moves past the events that it
// does not get.
func TestCursorMovesWithoutEvents(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	other := b.follow(t, stream.Query{After: stream.Latest})
	f := b.follow(t, stream.Query{After: stream.Latest, Filter: events.Filter{Types: []string{"job.failed"}}})
	f.next(t)
	b.add(t, 300, eventtype.Queued)
	b.add(t, 1, eventtype.Failed)
	if got := f.next(t); !slices.Equal(positions(got.Events), from(301, 301)) {
		t.Fatalf("got %v, want the event 301 alone", positions(got.Events))
	}
	for i := range 3 {
		b.add(t, 2, eventtype.Queued)
		want := b.Cursor()
		for known := false; !known; { // until the process has read the events
			known = other.next(t).Cursor == want
		}
		b.clock.Advance(stream.CursorInterval)
		got := f.next(t)
		for got.Cursor != want { // the reader may check the clock first
			b.clock.Advance(stream.CursorInterval)
			got = f.next(t)
		}
		if len(got.Events) != 0 || got.Retry != 0 || got.End {
			t.Errorf("interval %d: got %+v, want the cursor %s alone", i, got, want)
		}
	}
}

func TestStreamEndsAtARandomTime(t *testing.T) {
	t.Parallel()
	ends, retries := map[time.Duration]bool{}, map[time.Duration]bool{}
	for range 20 {
		b := setup(t, settings)
		f := b.follow(t, stream.Query{After: stream.Latest})
		f.next(t)
		var batch stream.Batch
		began := b.clock.Now()
		for !batch.End {
			b.clock.Advance(stream.CursorInterval)
			batch = f.next(t)
		}
		passed := b.clock.Now().Sub(began)
		ends[passed], retries[batch.Retry] = true, true
		if passed < 12*time.Minute || passed > 14*time.Minute+2*stream.CursorInterval || batch.Retry < time.Second || batch.Retry > 5*time.Second {
			t.Errorf("got the end after %s with retry %s, want 12 to 14 min and 1 to 5 s", passed, batch.Retry)
		}
		f.end(t)
	}
	if len(ends) < 4 || len(retries) < 10 {
		t.Errorf("got the ends %v and retries %v, want random ones", ends, retries)
	}
}

func TestTenantHasLimitedSeats(t *testing.T) {
	t.Parallel()
	config := settings
	config.Readers = 2
	b := setup(t, config)
	b.add(t, 1, eventtype.Accepted)
	first, second := b.follow(t, stream.Query{After: stream.Latest}), b.follow(t, stream.Query{After: stream.Latest})
	first.next(t)
	second.next(t)
	for after, want := range map[string]int64{stream.Earliest: 0, stream.Latest: 1} {
		refused := b.follow(t, stream.Query{After: after})
		if got := refused.next(t); !got.End || got.Retry != 5*time.Second || got.Cursor.Epoch == "" || got.Cursor.Position != want {
			t.Errorf("got %+v over the limit, want the end, a retry of 5 s and the place", got)
		}
		refused.end(t)
	}
	other := make(chan stream.Batch, 1)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		ofOther := who
		ofOther.Tenant = "tenant-b"
		_ = follow(ctx, b.streams, ofOther, stream.Query{After: "0", Transport: series.SSE}, func(batch stream.Batch) error { other <- batch; return nil })
	}()
	if got := <-other; got.End {
		t.Errorf("got %+v for another tenant, want a stream", got)
	}
	first.leave()
	<-first.ended
	third := b.follow(t, stream.Query{After: "0"})
	if got := third.next(t); got.End {
		t.Errorf("got %+v after a reader left, want a stream", got)
	}
}

func TestCloseEndsAllStreams(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, 3, eventtype.Queued)
	var readers []*follower
	for range 5 {
		f := b.follow(t, stream.Query{After: stream.Latest})
		f.next(t)
		readers = append(readers, f)
	}
	closed := make(chan error, 1)
	go func() { closed <- b.streams.Close(t.Context()) }()
	for _, f := range readers {
		if got := f.next(t); !got.End || got.Retry < time.Second || got.Cursor != b.Cursor() {
			t.Errorf("got %+v, want the end with a retry and the cursor", got)
		}
		f.end(t)
	}
	if err := <-closed; err != nil {
		t.Errorf("got %v, want a close without error", err)
	}
	late := b.follow(t, stream.Query{After: "0"})
	if got := late.next(t); !got.End || got.Retry != 5*time.Second {
		t.Errorf("got %+v after the close, want the end", got)
	}
}

// TestLostStreamEndsItsReaders: a stream that is lost and created again ends. Its reader gets a
// gap when it reconnects.
func TestLostStreamEndsItsReaders(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, 3, eventtype.Queued)
	f := b.follow(t, stream.Query{After: stream.Latest})
	f.next(t)
	b.feed.Lose(port.EventStream(tenant))
	again, err := streamtest.New(b.feed, tenant, b.clock)
	if err == nil {
		err = again.Add(t.Context(), false, eventtype.Queued)
	}
	if err != nil || again.Cursor().Epoch == b.Cursor().Epoch {
		t.Fatalf("got the epoch %s again, %v, want another one", again.Cursor().Epoch, err)
	}
	for {
		b.clock.Advance(stream.CursorInterval)
		if got := f.next(t); got.End {
			break
		}
	}
	f.end(t)
}

// TestResumeAfterRandomCuts: readers that are disconnected at random times receive each event
// once, in order.
func TestResumeAfterRandomCuts(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	const total = 2000
	var readers sync.WaitGroup
	for n := range 20 {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			var got []int64
			for after := "0"; len(got) < total; {
				ctx, cut := context.WithCancel(t.Context())
				left := random.IntN(6)
				err := follow(ctx, b.streams, who, stream.Query{After: after, Transport: series.SSE}, func(batch stream.Batch) error {
					if left--; left < 0 {
						return errors.New("cut") // the reader does not receive this batch
					}
					got, after = append(got, positions(batch.Events)...), batch.Cursor.String()
					if len(got) >= total || random.IntN(4) == 0 {
						cut()
					}
					return nil
				})
				if cut(); err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(got, from(1, total)) {
				t.Errorf("reader %d: got %d events, want each of %d once in order", n, len(got), total)
			}
		})
	}
	for range total / 20 {
		b.add(t, 20, eventtype.Queued)
	}
	readers.Wait()
	if reads := b.feed.count(); reads > total {
		t.Errorf("got %d reads of the feed by 20 readers of %d events, want shared reads", reads, total)
	}
}

// TestReconnectsAreSpread: 1,000 readers that are disconnected at once reconnect spread over
// time.
func TestReconnectsAreSpread(t *testing.T) {
	t.Parallel()
	config := settings
	config.Readers = 1000
	b := setup(t, config)
	b.add(t, 10, eventtype.Queued)
	var mu sync.Mutex
	seconds := map[int]int{}
	var readers sync.WaitGroup
	ready := make(chan struct{}, 1000)
	for range 1000 {
		readers.Go(func() {
			var got []int64
			var ended stream.Batch
			if err := follow(t.Context(), b.streams, who, stream.Query{After: "0", Transport: series.SSE}, func(batch stream.Batch) error {
				got, ended = append(got, positions(batch.Events)...), batch
				if len(batch.Events) > 0 {
					ready <- struct{}{}
				}
				return nil
			}); err != nil || !ended.End || !slices.Equal(got, from(1, 10)) {
				t.Errorf("got %v and the batch %+v, %v, want all events and the end", got, ended, err)
			}
			mu.Lock()
			defer mu.Unlock()
			seconds[int(ended.Retry/time.Second)]++
		})
	}
	for range 1000 {
		<-ready
	}
	if err := b.streams.Close(t.Context()); err != nil {
		t.Error(err)
	}
	readers.Wait()
	for second, n := range seconds {
		if n > 400 {
			t.Errorf("got %d of 1000 reconnects in second %d, want at most 400", n, second)
		}
	}
}
