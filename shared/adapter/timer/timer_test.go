package timer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/shared/adapter/timer"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/porttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// last is delivered after all jobs that are due.
var last = job.Ref{Tenant: "test", ID: "last"}

// setup runs Schedules until the test ends. delivered gets the jobs in order.
func setup(t *testing.T) (s *timer.Schedules, c *clock.Virtual, delivered <-chan job.Ref) {
	t.Helper()
	c = clock.NewVirtual(epoch)
	s = timer.New(c)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	refs := make(chan job.Ref, 100)
	running.Go(func() { s.Run(ctx, 1, func(_ context.Context, ref job.Ref) { refs <- ref }) })
	return s, c, refs
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	porttest.Schedules(t, func(t *testing.T) porttest.SchedulesHarness {
		s, c, delivered := setup(t)
		return porttest.SchedulesHarness{Schedules: s, Now: epoch, Advance: func(d time.Duration) (due []job.Ref) {
			c.Advance(d)
			if err := s.Set(t.Context(), last, c.Now().Add(1)); err != nil {
				t.Error(err)
			}
			c.Advance(1)
			for ref := range delivered {
				if ref == last {
					break
				}
				due = append(due, ref)
			}
			return due
		}}
	})
}

// TestClockIsSet checks that a wake-up follows the clock and not a timer of the host.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	s, c, delivered := setup(t)
	ref := job.Ref{Tenant: "default", ID: "nightly"}
	c.Advance(-time.Hour)
	if err := s.Set(t.Context(), ref, epoch); err != nil {
		t.Fatal(err)
	}
	c.Advance(time.Hour)
	if got := <-delivered; got != ref {
		t.Errorf("got %v, want %v", got, ref)
	}
}

// TestStopAwaitsCalls checks that Run returns after its calls.
func TestStopAwaitsCalls(t *testing.T) {
	t.Parallel()
	s := timer.New(clock.NewVirtual(epoch))
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Set(ctx, last, epoch); err != nil {
		t.Fatal(err)
	}
	returned := false
	s.Run(ctx, 1, func(ctx context.Context, _ job.Ref) {
		cancel()
		<-ctx.Done()
		returned = true
	})
	if !returned {
		t.Error("got a return during a call, want one after it")
	}
}
