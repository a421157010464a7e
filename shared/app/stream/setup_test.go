package stream_test

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	tenant    = "tenant-a"
	retention = time.Hour
)

var (
	epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	who   = port.Identity{Tenant: tenant}
)

// bench is a stream with its writer.
type bench struct {
	*streamtest.Writer

	clock   *clock.Virtual
	feed    *counted
	streams *stream.Streams
	tally   *porttest.Tally
}

// counted counts the reads of a feed.
type counted struct {
	*fake.Feed

	mu    sync.Mutex
	reads int
	held  sync.RWMutex
}

// hold blocks reads until release is called.
func (c *counted) hold()    { c.held.Lock() }
func (c *counted) release() { c.held.Unlock() }

func (c *counted) Read(ctx context.Context, name string, after int64, limit int) ([]port.FeedRecord, error) {
	c.mu.Lock()
	c.reads++
	c.mu.Unlock()
	c.held.RLock()
	defer c.held.RUnlock()
	return c.Feed.Read(ctx, name, after, limit)
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads
}

// settings is the configuration of most tests.
var settings = stream.Config{Life: 14 * time.Minute, Readers: 200}

func setup(t *testing.T, config stream.Config) *bench {
	t.Helper()
	now := clock.NewVirtual(epoch)
	feed := &counted{Feed: fake.NewFeed(now, retention, nil, func(err error) { t.Error(err) })}
	w, err := streamtest.New(feed, tenant, now)
	if err != nil {
		t.Fatal(err)
	}
	tally := &porttest.Tally{}
	config.Record = tally.Record
	t.Cleanup(func() {
		for _, problem := range tally.Problems() {
			t.Error(problem)
		}
	})
	return &bench{w, now, feed, stream.New(feed, now, slog.New(slog.DiscardHandler), rand.Float64, config), tally}
}

// add appends n events of a type, with a checkpoint after each 100 events and after the last
// one.
func (b *bench) add(t *testing.T, n int, kind eventtype.Type) {
	t.Helper()
	for types := range slices.Chunk(slices.Repeat([]eventtype.Type{kind}, n), 100) {
		if err := b.Add(t.Context(), true, types...); err != nil {
			t.Fatal(err)
		}
	}
}

// follower is a reader in its own goroutine.
type follower struct {
	batches chan stream.Batch
	ended   chan error
	leave   context.CancelFunc
}

// follow starts a reader. Its send blocks until the test receives the batch.
func (b *bench) follow(t *testing.T, q stream.Query) *follower {
	t.Helper()
	q.Transport = cmp.Or(q.Transport, series.SSE)
	ctx, leave := context.WithCancel(t.Context())
	f := &follower{make(chan stream.Batch), make(chan error, 1), leave}
	t.Cleanup(leave)
	go func() {
		f.ended <- follow(ctx, b.streams, who, q, func(batch stream.Batch) error {
			select {
			case f.batches <- batch:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return f
}

// next returns the next batch.
func (f *follower) next(t *testing.T) stream.Batch {
	t.Helper()
	select {
	case b := <-f.batches:
		return b
	case err := <-f.ended:
		t.Fatalf("got the end of the stream, %v, want a batch", err)
	case <-time.After(2 * time.Minute):
		t.Fatal("got no batch in two minutes, want one")
	}
	return stream.Batch{}
}

// end waits until the reader has ended.
func (f *follower) end(t *testing.T) {
	t.Helper()
	select {
	case b := <-f.batches:
		t.Errorf("got %+v, want the end of the stream", b)
	case err := <-f.ended:
		if err != nil {
			t.Errorf("got %v at the end, want no error", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("got no end in two minutes, want one")
	}
}

func positions(found []*stream.Event) (all []int64) {
	for _, e := range found {
		all = append(all, e.Position)
	}
	return all
}

func from(first, last int64) (all []int64) {
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

// follow opens a stream and follows it until its end.
func follow(ctx context.Context, s *stream.Streams, who port.Identity, q stream.Query, send func(stream.Batch) error) error {
	r, err := s.NewReader(ctx, who, q)
	if err != nil {
		return err
	}
	r.Follow(ctx, send)
	return nil
}
