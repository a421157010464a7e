package timer_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/timer"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/job"
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
	running.Go(func() { s.Run(ctx, 1, func(_ context.Context, ref job.Ref) error { refs <- ref; return nil }) })
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
	s.Run(ctx, 1, func(ctx context.Context, _ job.Ref) error {
		cancel()
		<-ctx.Done()
		returned = true
		return nil
	})
	if !returned {
		t.Error("got a return during a call, want one after it")
	}
}

// TestFailedCallIsRepeated checks that a wake-up is consumed by a call that succeeds.
func TestFailedCallIsRepeated(t *testing.T) {
	t.Parallel()
	nightly, later := job.Ref{Tenant: "default", ID: "nightly"}, errors.New("the store is locked")
	for name, test := range map[string]struct {
		// meanwhile happens during the first call.
		meanwhile func(context.Context, *timer.Schedules) error
		failures  int
		want      []time.Duration
	}{
		"backoff": {nil, 9, []time.Duration{
			0, 100 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond, 1500 * time.Millisecond,
			3100 * time.Millisecond, 6300 * time.Millisecond, 11300 * time.Millisecond, 16300 * time.Millisecond, 21300 * time.Millisecond,
		}},
		"a later wake-up is set": {func(ctx context.Context, s *timer.Schedules) error {
			return s.Set(ctx, nightly, epoch.Add(time.Hour))
		}, 2, []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond}},
		"the wake-up is removed": {func(ctx context.Context, s *timer.Schedules) error {
			return s.Remove(ctx, nightly)
		}, 1, []time.Duration{0, 100 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, began, calls := timer.New(clock.System{}), time.Now(), []time.Duration(nil)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := s.Set(ctx, nightly, began); err != nil {
					t.Fatal(err)
				}
				s.Run(ctx, 1, func(ctx context.Context, _ job.Ref) error {
					calls = append(calls, time.Since(began))
					if len(calls) == 1 && test.meanwhile != nil {
						if err := test.meanwhile(ctx, s); err != nil {
							t.Error(err)
						}
					}
					if len(calls) <= test.failures {
						return later
					}
					return s.Remove(ctx, nightly)
				})
				if !slices.Equal(calls, test.want) {
					t.Errorf("got calls at %v, want %v", calls, test.want)
				}
			})
		})
	}
}
