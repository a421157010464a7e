package inferences_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// slotTime is the maximum time for which a task may keep its slot after the end of its stream
// or its attempt: the grace of engines plus the steps of the clock.
const slotTime = 6 * time.Second

// steps advances the clock in a synctest bubble, by 100 ms whenever all goroutines wait, until
// over returns true. It fails the test after most.
func (h *inferring) steps(most time.Duration, over func() bool) (passed time.Duration) {
	h.Helper()
	const step = 100 * time.Millisecond
	for ; passed < most; passed += step {
		synctest.Wait()
		if over() {
			return passed
		}
		h.clock.Advance(step)
	}
	h.Fatalf("it is not over after %s", most)
	return passed
}

// stored returns a run as it is stored.
func (h *inferring) stored(task string) run.Run {
	h.Helper()
	r, err := h.store.Find(h.Context(), client.Tenant, task)
	h.ok(err)
	return r
}

// freed cancels a task, and checks that it ends within slotTime.
func (h *inferring) freed(task string) {
	h.Helper()
	_, err := h.tasks.Cancel(h.Context(), client, task, "enough")
	h.ok(err)
	h.steps(slotTime, func() bool { return h.stored(task).State.Terminal() })
	if r := h.stored(task); r.State != run.Cancelled {
		h.Errorf("got %s with %v, want Cancelled", r.State, r.Fault)
	}
}

// silent is an engine whose Health or Load does not answer while health or load is true.
type silent struct {
	port.Engine

	health, load *atomic.Bool
}

func (e silent) Health(ctx context.Context) (port.EngineHealth, error) {
	if e.health.Load() {
		<-ctx.Done()
		return port.EngineHealth{}, ctx.Err()
	}
	return e.Engine.Health(ctx)
}

func (e silent) Load(ctx context.Context) (port.EngineLoad, error) {
	if e.load.Load() {
		<-ctx.Done()
		return port.EngineLoad{}, ctx.Err()
	}
	return e.Engine.Load(ctx)
}

// TestCancelFreesTheSlot cancels a task in each situation in which it has a slot of its pool.
func TestCancelFreesTheSlot(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		// begin prepares the engine so that the task reaches the state want.
		begin func(h *inferring, e silent)
		want  run.State
	}{
		"while the engine loads": {
			func(h *inferring, _ silent) { h.engines["r1"].SetLoading(true) }, run.ContainerCreating,
		},
		"while the engine does not say whether it is ready": {
			func(_ *inferring, e silent) { e.health.Store(true) }, run.ContainerCreating,
		},
		"before the first token": {
			func(h *inferring, _ silent) { h.engines["r1"].FailNext(mockengine.FailStall, 0) }, run.Running,
		},
		"after a token": {
			func(h *inferring, _ silent) { h.engines["r1"].FailNext(mockengine.FailStall, 1) }, run.Running,
		},
		"of an engine that does not say whether its slot is free": {
			func(h *inferring, e silent) {
				h.engines["r1"].FailNext(mockengine.FailStall, 1)
				e.load.Store(true)
			}, run.Running,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := silent{health: &atomic.Bool{}, load: &atomic.Bool{}}
				h := newInferring(t, 1, 1, func(h *inferring) {
					h.wrap = func(of port.Engine) port.Engine { return silent{of, e.health, e.load} }
				})
				row.begin(h, e)
				task := h.ask(3)
				h.steps(3*time.Second, func() bool { return h.clock.Now().Sub(epoch) > 2*time.Second })
				if got := h.stored(task).State; got != row.want {
					t.Fatalf("got %s, want %s", got, row.want)
				}
				h.freed(task)
				h.engines["r1"].SetLoading(false)
				e.health.Store(false)
				e.load.Store(false)
				next := h.ask(1)
				h.steps(10*time.Second, func() bool { return h.stored(next).State == run.Completed })
			})
		})
	}
}

// TestSilentEngineKeepsNoSlot cancels a task whose engine reports the request as running until
// just before the end of the grace, and then does not answer.
func TestSilentEngineKeepsNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := silent{health: &atomic.Bool{}, load: &atomic.Bool{}}
		h := newInferring(t, 1, 1, func(h *inferring) {
			h.engines["r1"] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: 1, Plan: func(port.Generation) mockengine.Course {
				return mockengine.Course{Failure: mockengine.FailStall, After: 1, Keeps: time.Minute}
			}})
			h.wrap = func(of port.Engine) port.Engine { return silent{of, e.health, e.load} }
		})
		task := h.ask(3)
		h.steps(3*time.Second, func() bool { return h.stored(task).State == run.Running && h.clock.Now().Sub(epoch) > 2*time.Second })
		_, err := h.tasks.Cancel(h.Context(), client, task, "enough")
		h.ok(err)
		cancelled := h.clock.Now()
		passed := h.steps(slotTime, func() bool {
			e.load.Store(h.clock.Now().Sub(cancelled) > 4*time.Second)
			return h.stored(task).State.Terminal()
		})
		if passed < 4*time.Second {
			t.Errorf("got a free slot after %s, want one that the engine keeps", passed)
		}
		if got := h.tally.Of(series.SlotsLeaked, "pool0"); got != 1 {
			t.Errorf("got %s %v, want 1", series.SlotsLeaked, got)
		}
		h.clock.Advance(time.Minute) // the engine ends the request
	})
}

// TestSilentEngineEndsTheStart uses an engine that accepts connections and does not answer: the
// attempts end at their start limits.
func TestSilentEngineEndsTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := silent{health: &atomic.Bool{}, load: &atomic.Bool{}}
		e.health.Store(true)
		h := newInferring(t, 1, 1, func(h *inferring) {
			h.wrap = func(of port.Engine) port.Engine { return silent{of, e.health, e.load} }
		})
		task := h.ask(3)
		h.steps(4*40*time.Second, func() bool { return h.stored(task).State.Terminal() })
		if r := h.stored(task); r.State != run.Failed || r.Fault.Code != fault.PoolUnavailable {
			t.Errorf("got %s with %v, want Failed with %s", r.State, r.Fault, fault.PoolUnavailable)
		}
	})
}

// TestCancelOfTheLastAttemptFreesTheSlot lets an engine stall twice and then load its model, so
// that a task uses all of its attempts. It cancels the task in the last one.
func TestCancelOfTheLastAttemptFreesTheSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newInferring(t, 1, 1)
		h.engines["r1"].FailNext(mockengine.FailStall, 0)
		h.engines["r1"].FailNext(mockengine.FailStall, 0)
		h.wrap = func(of port.Engine) port.Engine { return loadsAfter{of, h.engines["r1"], new(atomic.Int32)} }
		h.restart()
		task := h.ask(3, func(in *inferences.NewTask) { in.Within = 20 * time.Minute })
		h.steps(10*time.Minute, func() bool { return h.stored(task).Attempt.Number == 6 })
		h.freed(task)
	})
}

// loadsAfter is an engine that loads its model after two requests.
type loadsAfter struct {
	port.Engine

	mock  *mockengine.Engine
	asked *atomic.Int32
}

func (e loadsAfter) Generate(ctx context.Context, g port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	end, err := e.Engine.Generate(ctx, g, each)
	if e.asked.Add(1) == 2 {
		e.mock.SetLoading(true)
	}
	return end, err
}

// TestFailedCallKeepsNoSlot fails, once each, the calls of the store and the streams that a
// dispatcher makes for a task. The task is cancelled, or its engine stalls. The retry frees the
// slot.
func TestFailedCallKeepsNoSlot(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		end  func(h *inferring, task string)
		most time.Duration
	}{
		"cancelled": {func(h *inferring, task string) {
			if _, err := h.tasks.Cancel(h.Context(), client, task, ""); err != nil { // a client repeats it
				_, err = h.tasks.Cancel(h.Context(), client, task, "")
				h.ok(err)
			}
		}, slotTime},
		"stalled": {func(*inferring, string) {}, 30*time.Second + slotTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const mostCalls = 40
			for calls := range int32(mostCalls) {
				over := false
				synctest.Test(t, func(t *testing.T) {
					left := &atomic.Int32{}
					left.Store(-1)
					h := newInferring(t, 1, 1, func(h *inferring) {
						h.store, h.feed = onceFailingStore{h.store, left}, onceFailingFeed{h.feed, left}
					})
					h.engines["r1"].FailNext(mockengine.FailStall, 1)
					task := h.ask(3)
					h.steps(time.Second, func() bool { return h.stored(task).State == run.Running })
					left.Store(calls)
					row.end(h, task)
					h.steps(row.most, func() bool { return h.stored(task).State.Terminal() })
					over = left.Load() > 0
				})
				if over || t.Failed() {
					return
				}
			}
			t.Errorf("the dispatcher makes more than %d calls", mostCalls)
		})
	}
}

// failsOnce returns an error for the call after left further ones.
func failsOnce(left *atomic.Int32) error {
	if left.Add(-1) == -1 {
		return fault.New(fault.Unavailable, "request lost")
	}
	return nil
}

type onceFailingStore struct {
	port.Store

	left *atomic.Int32
}

func (s onceFailingStore) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	if err := failsOnce(s.left); err != nil {
		return run.Run{}, err
	}
	return s.Store.Load(ctx, ref)
}

func (s onceFailingStore) Commit(ctx context.Context, writes ...port.Write) error {
	if err := failsOnce(s.left); err != nil {
		return err
	}
	return s.Store.Commit(ctx, writes...)
}

type onceFailingFeed struct {
	port.AnswerFeed

	left *atomic.Int32
}

func (f onceFailingFeed) Head(ctx context.Context, stream string) (port.Head, error) {
	if err := failsOnce(f.left); err != nil {
		return port.Head{}, err
	}
	return f.AnswerFeed.Head(ctx, stream)
}

func (f onceFailingFeed) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	if err := failsOnce(f.left); err != nil {
		return port.Head{}, err
	}
	return f.AnswerFeed.Append(ctx, stream, b)
}

// lastTokenFails is a feed that does not append the last token of an answer.
type lastTokenFails struct {
	port.AnswerFeed

	first string // part of the record of the token
}

func (f lastTokenFails) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	for _, each := range b.Records {
		if strings.Contains(string(each.Data), f.first) {
			return port.Head{}, fault.New(fault.Unavailable, "request lost")
		}
	}
	return f.AnswerFeed.Append(ctx, stream, b)
}

// TestFailureCountsTheTokensOfItsStream loses the last token of an answer that the engine has
// ended: the failure counts the tokens in the stream.
func TestFailureCountsTheTokensOfItsStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newInferring(t, 1, 1, func(h *inferring) {
			h.feed = lastTokenFails{h.feed, `"first":2`}
			h.engines["r1"] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: 1, TokenEvery: time.Second})
		})
		task := h.ask(3)
		h.steps(20*time.Second, func() bool { return h.stored(task).State.Terminal() })
		events := h.read(task, inference.EventID{})
		failure, failed := events[len(events)-1].Data.(inference.Failure)
		if tokens := strings.Count(names(events), "t"); !failed || tokens != 2 || failure.TokensOut != tokens {
			t.Errorf("got %d tokens and %+v, want a failure with 2", tokens, events[len(events)-1].Data)
		}
		if used := h.stored(task).Generation.TokensOut; used != 2 {
			t.Errorf("got %d used tokens, want 2", used)
		}
	})
}
