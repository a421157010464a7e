package run_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestFallbacksEnd runs through pools with random fallbacks without a cycle, whose platforms
// start machines or not. An attempt must have one pool and at most one machine. No pool may be
// tried twice before a machine starts, and the run must end.
func TestFallbacksEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "pools")
		name := func(i int) string { return fmt.Sprintf("p%d", i) }
		fallbacks := map[string][]platform.Fallback{}
		for from := range n {
			for to := from + 1; to < n; to++ {
				if on := rapid.SliceOfNDistinct(rapid.SampledFrom([]platform.FallbackReason{platform.FallbackCapacity, platform.FallbackImage}), 0, 2, rapid.ID).Draw(t, "on"); len(on) > 0 {
					fallbacks[name(from)] = append(fallbacks[name(from)], platform.Fallback{Pool: name(to), On: on})
				}
			}
		}
		home := name(rapid.IntRange(0, n-1).Draw(t, "home"))
		first := fresh()
		first.Slot.Pool = home
		r, now := run.New(first, epoch).Run, epoch
		open := func() []platform.Fallback { return slices.Concat(fallbacks[r.NextPool()], fallbacks[home]) }
		decide := func(f run.Fact) {
			now = now.Add(time.Hour)
			d, err := run.Decide(r, f, now)
			if err != nil {
				t.Fatalf("%T in %s: %v", f, r.State, err)
			}
			r = d.Run
		}
		var tried []string // since a machine last started
		for range 8 * n {
			pool, attempt := r.NextPool(), r.Attempt.Number+1
			decide(run.Admitted{Pool: pool, Limit: 1})
			if slices.Contains(tried, pool) && r.Spent.Starts == 0 {
				t.Fatalf("attempt %d is in pool %s, which was tried before: %v", attempt, pool, tried)
			}
			tried = append(tried, pool)
			for r.State == run.ContainerCreating {
				if r.Attempt.Number != attempt || r.Slot.Pool != pool {
					t.Fatalf("got attempt %d in pool %s, want attempt %d in %s", r.Attempt.Number, r.Slot.Pool, attempt, pool)
				}
				decide(run.TokenStored{Step: r.Wait.Step, Generation: r.Wait.Generation, Token: fmt.Sprint(r.Wait.Generation)})
				why := fault.New(rapid.SampledFrom([]fault.Code{fault.Capacity, fault.Image, fault.LaunchRefused}).Draw(t, "code"), "no")
				machine := platform.Machine{ID: fmt.Sprintf("m%d", attempt)}
				switch rapid.IntRange(0, 2).Draw(t, "start") {
				case 0:
					decide(run.StartRefused{Attempt: attempt, Fault: why, Fallbacks: open()})
				case 1:
					decide(run.MachineCreated{Attempt: attempt, Machine: machine})
					decide(run.StartFailed{Attempt: attempt, Fault: why, Fallbacks: open()})
				case 2:
					decide(run.MachineCreated{Attempt: attempt, Machine: machine, Running: true})
					decide(run.MachineGone{Attempt: attempt, Exit: &run.Exit{Code: 1}})
					tried = nil
				}
				if m := r.Attempt.Machine; m.Known() && m.Pool != pool {
					t.Fatalf("got a machine in pool %s, want %s", m.Pool, pool)
				}
			}
			decide(run.Settled{Destroyed: true})
			if r.State.Terminal() {
				return
			}
			next := r.NextPool()
			decide(run.Due{})
			if r.Slot.Pool != next {
				t.Fatalf("got pool %s for the next attempt, want %s as predicted", r.Slot.Pool, next)
			}
		}
		t.Fatalf("got %s after %d attempts, want an end", r.State, r.Attempt.Number)
	})
}
