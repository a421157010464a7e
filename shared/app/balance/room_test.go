package balance_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/app/balance"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// reporting is a ready engine with these capabilities.
type reporting struct {
	port.Engine

	can port.EngineCapabilities
}

func (reporting) Health(context.Context) (port.EngineHealth, error) {
	return port.EngineHealth{Live: true, Ready: true}, nil
}

func (e reporting) Capabilities(context.Context) (port.EngineCapabilities, error) { return e.can, nil }

// poolOf returns a pool with one replica and 8 slots, and a function that takes a slot for a
// task within a minute.
func poolOf(t *testing.T, can port.EngineCapabilities) (take func(task string, prompt, answer int, open bool) (*balance.Lease, error)) {
	t.Helper()
	engines := func(string, platform.EnginePlace, platform.EngineReplica) (port.Engine, error) {
		return reporting{can: can}, nil
	}
	replicas := balance.NewReplicas(engines, clock.System{}, slog.New(slog.DiscardHandler), func(context.Context, ...series.Sample) {})
	pool := platform.Pool{Tenant: "t", ID: "p", Engine: &platform.EnginePlace{Kind: platform.EngineVLLM, Model: "m", Slots: 8, Replicas: []platform.EngineReplica{{ID: "r1"}}}}
	replicas.Describe(t.Context(), pool)
	return func(task string, prompt, answer int, open bool) (*balance.Lease, error) {
		now := time.Now()
		r := run.Run{Tenant: "t", ID: task, TaskID: task, CreatedAt: now, Slot: platform.Slot{Pool: "p"}, Attempt: run.Attempt{StartBy: now.Add(30 * time.Second)}}
		r.Work.Inference = &spec.Inference{Model: "m", PromptTokens: prompt, MaxTokens: answer, OpenEnd: open, Within: time.Minute}
		return replicas.Take(t.Context(), r, func(context.Context) (platform.Pool, error) { return pool, nil })
	}
}

func TestReportedSlotsLowerThoseOfThePool(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		can  port.EngineCapabilities
		want int
	}{
		"unknown":         {port.EngineCapabilities{}, 8},
		"fewer slots":     {port.EngineCapabilities{Slots: 3}, 3},
		"more slots":      {port.EngineCapabilities{Slots: 64}, 8},
		"memory for two":  {port.EngineCapabilities{Slots: 64, KVTokens: 299}, 2},
		"memory for none": {port.EngineCapabilities{KVTokens: 10}, 1}, // the engine decides about the first
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				take := poolOf(t, row.can)
				taken := 0
				for began := time.Now(); ; taken++ {
					if _, err := take("task", 60, 40, false); err != nil {
						if !fault.Is(err, fault.DeadlineUnmet) || time.Since(began) != time.Minute {
							t.Errorf("got %v after %s, want DeadlineUnmet at the deadline", err, time.Since(began))
						}
						break
					}
				}
				if taken != row.want {
					t.Errorf("got %d slots, want %d", taken, row.want)
				}
			})
		})
	}
}

// TestLargeTaskIsNotOvertaken has memory for 3,000 tokens. A task with 2,500 waits, and a small
// one that comes later waits for it. A task without a limit of its own counts 1,024.
func TestLargeTaskIsNotOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		take := poolOf(t, port.EngineCapabilities{KVTokens: 3000})
		first, err := take("first", 76, 30_000, true)
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		got := make(chan string, 2)
		enter := func(task string, prompt int) {
			go func() {
				l, err := take(task, prompt, 100, false)
				if err != nil {
					t.Errorf("%s: %v", task, err)
				}
				got <- task
				l.Release()
			}()
			synctest.Wait()
		}
		enter("large", 2400)
		enter("small", 50)
		if len(got) > 0 {
			t.Fatalf("got a slot for %s, want both to wait", <-got)
		}
		first.Release()
		for range 2 {
			order = append(order, <-got)
		}
		if order[0] != "large" {
			t.Errorf("got the order %v, want the large task first", order)
		}
	})
}

// TestPauseOfAnEngineIsKept lets an engine request a pause. Tasks wait for its end, also one with
// more patience than the limit of a start.
func TestPauseOfAnEngineIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		take := poolOf(t, port.EngineCapabilities{})
		first, err := take("first", 60, 40, false)
		if err != nil {
			t.Fatal(err)
		}
		busy := port.EngineAnswer{Fault: fault.New(fault.ReplicaExhausted, "busy"), Status: 429, RetryAfter: 45 * time.Second}
		if pause := first.Cool(busy); pause != 45*time.Second || first.Cool(busy.Fault) != 0 || first.Cool(nil) != 0 {
			t.Errorf("got a pause of %v, want that of the answer", pause)
		}
		began := time.Now()
		if _, err := take("second", 60, 40, false); err != nil || time.Since(began) != 45*time.Second {
			t.Errorf("got %v after %v, want a slot after 45s", err, time.Since(began))
		}
		busy.RetryAfter = 24 * time.Hour
		if pause := first.Cool(busy); pause != 5*time.Minute {
			t.Errorf("got a pause of %v, want at most 5m", pause)
		}
		began = time.Now()
		if _, err := take("third", 60, 40, false); !fault.Is(err, fault.DeadlineUnmet) || time.Since(began) != time.Minute {
			t.Errorf("got %v after %v, want DeadlineUnmet at the deadline", err, time.Since(began))
		}
	})
}
