package clock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// play calls do in a subtest for each kind of clock. pass advances that clock.
func play(t *testing.T, do func(t *testing.T, c clock.Clock, pass func(time.Duration))) {
	t.Helper()
	for _, name := range []string{"system", "virtual", "another"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				virtual := clock.NewVirtual(time.Now())
				pass := func(d time.Duration) { synctest.Wait(); virtual.Advance(d); synctest.Wait() }
				switch name {
				case "system":
					do(t, clock.System{}, func(d time.Duration) { <-time.NewTimer(d).C; synctest.Wait() })
				case "virtual":
					do(t, virtual, pass)
				default:
					do(t, struct{ clock.Clock }{virtual}, pass)
				}
			})
		})
	}
}

func TestAfterFunc(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, c clock.Clock, pass func(time.Duration)) {
		var calls, stopped atomic.Int64
		release := clock.AfterFunc(c, time.Minute, func() { calls.Add(1) })
		stop := clock.AfterFunc(c, time.Minute, func() { stopped.Add(1) })
		pass(time.Minute - 1)
		if n := calls.Load(); n != 0 {
			t.Errorf("got %d calls before the time, want 0", n)
		}
		stop()
		stop()
		pass(time.Hour)
		if n, of := calls.Load(), stopped.Load(); n != 1 || of != 0 {
			t.Errorf("got %d calls and %d of a stopped one, want 1 and 0", n, of)
		}
		release()
	})
}

func TestWithTimeout(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, c clock.Clock, pass func(time.Duration)) {
		ctx, release := clock.WithTimeout(t.Context(), c, time.Minute)
		defer release()
		released, end := clock.WithTimeout(t.Context(), c, time.Minute)
		pass(time.Second)
		if err := ctx.Err(); err != nil {
			t.Errorf("got %v before the time, want nil", err)
		}
		end()
		if err := released.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v after the release, want %v", err, context.Canceled)
		}
		pass(time.Minute)
		if err := ctx.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v after the time, want %v", err, context.Canceled)
		}
	})
}

func TestEveryStartsAfterTheLastCall(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, c clock.Clock, pass func(time.Duration)) {
		var calls atomic.Int64
		hold := make(chan struct{})
		stop := clock.Every(c, time.Minute, func() {
			if calls.Add(1) == 2 {
				<-hold
			}
		})
		for range 5 {
			pass(time.Minute)
		}
		if n := calls.Load(); n != 2 {
			t.Errorf("got %d calls while the second one runs, want 2", n)
		}
		var stopped atomic.Bool
		go func() { stop(); stopped.Store(true) }()
		pass(time.Minute)
		if stopped.Load() {
			t.Error("stop returned while a call ran")
		}
		close(hold)
		pass(time.Hour)
		if n, all := calls.Load(), stopped.Load(); n != 2 || !all {
			t.Errorf("got %d calls and stopped %t, want 2 and true", n, all)
		}
	})
}
