package inferences_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestFailedTaskIsTriedElsewhere creates tasks of one session, and after each task lets its
// replica fail all further requests. Each task tries the replicas in the same order, and
// completes at the first one that works. After the failures, the session uses the first replica
// again.
func TestFailedTaskIsTriedElsewhere(t *testing.T) {
	t.Parallel()
	fails := map[string]*atomic.Bool{}
	h := newInferring(t, 3, 4, func(h *inferring) {
		for id := range h.engines {
			failing := &atomic.Bool{}
			fails[id] = failing
			h.engines[id] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: 4, Plan: func(port.Generation) (c mockengine.Course) {
				if failing.Load() {
					c.Failure = mockengine.FailStart
				}
				return c
			}})
		}
	})
	var failed []string
	for range 3 {
		r := h.ended(h.ask(2, inSession("talk")))
		if r.State != run.Completed || r.Attempt.Number != len(failed)+1 || !slices.Equal(r.FailedReplicas, failed) {
			t.Fatalf("got %s in attempt %d with %v after failures at %v, want Completed in attempt %d elsewhere",
				r.State, r.Attempt.Number, r.Fault, r.FailedReplicas, len(failed)+1)
		}
		failed = append(failed, r.Generation.Replica)
		fails[r.Generation.Replica].Store(true)
	}
	for _, each := range fails {
		each.Store(false)
	}
	h.restart() // the replicas do not rest
	if r := h.ended(h.ask(2, inSession("talk"))); r.Generation.Replica != failed[0] || r.Attempt.Number != 1 {
		t.Errorf("got the replica %s in attempt %d, want %s as before its failures", r.Generation.Replica, r.Attempt.Number, failed[0])
	}
}

// gathered is an engine that calls wait before it reports its health.
type gathered struct {
	port.Engine
	wait func()
}

func (e gathered) Health(ctx context.Context) (port.EngineHealth, error) {
	e.wait()
	return e.Engine.Health(ctx)
}

// TestAffinityHasABound gives two replicas tasks of one session, or with the same prompt, that
// do not end. The first tasks choose their replica at the same time. The numbers of tasks of
// the replicas differ by at most two.
func TestAffinityHasABound(t *testing.T) {
	t.Parallel()
	for name, session := range map[string]string{"session": "talk", "prompt": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const slots, callers, bound = 8, 4, 2
			h := newInferring(t, 2, slots, func(h *inferring) {
				for id := range h.engines {
					h.engines[id] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: slots, Plan: func(port.Generation) mockengine.Course {
						return mockengine.Course{Failure: mockengine.FailStall, After: 1}
					}})
				}
				var asking sync.WaitGroup
				var asked atomic.Int32
				asking.Add(callers)
				h.wrap = func(e port.Engine) port.Engine {
					return gathered{e, func() {
						if asked.Add(1) <= callers {
							asking.Done()
						}
						asking.Wait()
					}}
				}
			})
			total, most := 0, 0
			together := func(n int) {
				tasks := make([]string, n)
				var creating sync.WaitGroup
				for i := range tasks {
					creating.Go(func() { tasks[i] = h.ask(3, inSession(session)) })
				}
				creating.Wait()
				for _, task := range tasks {
					h.seen(task, inference.NameToken)
				}
				found, err := h.pools.Health(t.Context(), client, "pool0")
				h.ok(err)
				first, second := found.Replicas[0].Held, found.Replicas[1].Held
				if total += n; first+second != total {
					t.Fatalf("got %d and %d tasks, want %d", first, second, total)
				}
				most = max(most, first-second, second-first)
			}
			together(callers)
			for range callers {
				together(1)
			}
			if most != bound {
				t.Errorf("got a difference of up to %d tasks, want %d", most, bound)
			}
		})
	}
}
