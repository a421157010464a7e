package stream_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// process returns the streams of another process.
func (b *bench) process(config stream.Config) *stream.Streams {
	return stream.New(b.feed, b.clock, slog.New(slog.DiscardHandler), rand.Float64, config)
}

// reader opens a stream of a process. Its first batch shows that it has a seat.
func (b *bench) reader(t *testing.T, s *stream.Streams, tenant string) *follower {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	f := &follower{make(chan stream.Batch), make(chan error, 1), leave}
	go func() {
		f.ended <- follow(ctx, s, port.Identity{Tenant: tenant}, stream.Query{After: stream.Latest}, func(batch stream.Batch) error {
			select {
			case f.batches <- batch:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	if first := f.next(t); first.End {
		t.Fatalf("got %+v, want an open stream of %s", first, tenant)
	}
	return f
}

// refused reports whether a new reader of the tenant is refused for lack of a seat.
func refused(t *testing.T, s *stream.Streams, tenant string) bool {
	t.Helper()
	var first *stream.Batch
	err := follow(t.Context(), s, port.Identity{Tenant: tenant}, stream.Query{After: stream.Latest}, func(b stream.Batch) error {
		first = &b
		return errors.New("the reader leaves")
	})
	if err != nil || first == nil {
		t.Fatalf("got %+v, %v, want a batch", first, err)
	}
	if first.End && first.Retry != stream.RefusedRetry {
		t.Errorf("got retry %s over the limit, want %s", first.Retry, stream.RefusedRetry)
	}
	return first.End
}

// TestProcessesShareSeats: processes that share seats share the limits of each tenant and of
// all tenants.
func TestProcessesShareSeats(t *testing.T) {
	t.Parallel()
	config := settings
	config.Readers, config.Total = 2, 3
	first := setup(t, settings)
	config.Seats = fake.NewSeats(first.clock, nil)
	one, other := first.process(config), first.process(config)
	a := first.reader(t, one, tenant)
	first.reader(t, other, tenant)
	if !refused(t, one, tenant) || !refused(t, other, tenant) {
		t.Error("got a third stream of the tenant, want it refused")
	}
	first.reader(t, one, "tenant-b")
	if !refused(t, other, "tenant-c") {
		t.Error("got a fourth stream, want it refused")
	}
	a.leave()
	for ended := false; !ended; {
		select {
		case <-a.batches: // this may be the last one
		case <-a.ended:
			ended = true
		}
	}
	if refused(t, other, "tenant-c") || refused(t, other, tenant) {
		t.Error("got the stream of a free seat refused, want it open")
	}
}

// TestSeatOfAnEndedProcess: a process that has ended keeps its seats for the life of a stream
// plus a minute.
func TestSeatOfAnEndedProcess(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	config := settings
	config.Readers, config.Seats = 1, fake.NewSeats(b.clock, nil)
	if _, ok, err := config.Seats.TakeSeat(t.Context(), port.EventStream(tenant), 1, b.clock.Now().Add(config.Life+time.Minute)); !ok || err != nil {
		t.Fatalf("got %t, %v, want the seat", ok, err)
	}
	s := b.process(config)
	b.clock.Advance(config.Life)
	if !refused(t, s, tenant) {
		t.Error("got a stream while the seat is taken, want it refused")
	}
	b.clock.Advance(time.Minute)
	if refused(t, s, tenant) {
		t.Error("got the stream refused after the time of the seat, want it open")
	}
}

// TestSeatsThatFail: a reader gets an error if the seats cannot be counted, and no seat stays
// taken.
func TestSeatsThatFail(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	config := settings
	config.Readers, config.Total = 1, 1
	fails := true
	config.Seats = fake.NewSeats(b.clock, func(c fake.Call) fake.Fate {
		if fails && c.Method == "TakeSeat" && c.Subject == "events" {
			return fake.Lost
		}
		return fake.Applied
	})
	s := b.process(config)
	err := follow(t.Context(), s, who, stream.Query{After: stream.Latest}, func(stream.Batch) error {
		t.Error("got a batch, want an error")
		return nil
	})
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want Unavailable", err)
	}
	fails = false
	if refused(t, s, tenant) {
		t.Error("got the stream refused after a failure, want it open")
	}
}
