package runs_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// fallsBack lets the default pool fall back to the pool spare, which has one slot and
// another runner.
func fallsBack(t *testing.T) *fixture {
	t.Helper()
	h := setup(t, func(c *runs.Config) {
		c.Runners = platform.RunnerOffer{Runners: []string{platform.RunnerFly, platform.RunnerProcess}}
	})
	define := func(id string, d pools.Definition) {
		_, _, err := h.service.Pools.Put(t.Context(), client, id, d, change.Precondition{})
		h.ok(err)
	}
	define("spare", pools.Definition{Limit: 1, Placement: platform.Placement{Runner: platform.RunnerProcess}})
	define("default", pools.Definition{Limit: 5, Fallbacks: []platform.Fallback{{Pool: "spare", On: []platform.FallbackReason{platform.FallbackCapacity}}}})
	return h
}

// refuse lets the next launch fail. Its machine ends before it is visible.
func (h *fixture) refuse(code fault.Code) {
	h.runner.during = func(m *machine) error {
		m.exit(0)
		return fault.New(code, "no room")
	}
}

func (h *fixture) wantHolders(pool string, want int) {
	h.Helper()
	held, err := h.store.Holders(h.Context(), client.Tenant, pool, 10)
	h.ok(err)
	if len(held) != want {
		h.Errorf("pool %s: got %d held slots, want %d", pool, len(held), want)
	}
}

// TestFallbackQueuesForTheOtherPool lets two runs fall back to a pool with one slot: the
// second one queues there, and no slot of either pool is lost.
func TestFallbackQueuesForTheOtherPool(t *testing.T) {
	t.Parallel()
	h := fallsBack(t)
	var tasks [2]string
	for i := range tasks {
		h.refuse(fault.Capacity)
		tasks[i] = h.post()
		h.advance(3 * time.Second)
	}
	first := h.wantState(tasks[0], run.Running)
	second := h.wantState(tasks[1], run.Pending)
	if first.Slot.Pool != "spare" || first.Attempt.Number != 2 || h.runner.launched[1].spec.Runner != platform.RunnerProcess || !first.InFallback() {
		t.Errorf("got attempt %d in pool %s, started by %q, want attempt 2 in spare by process", first.Attempt.Number, first.Slot.Pool, h.runner.launched[1].spec.Runner)
	}
	if s := first.Detour.Steps; len(s) != 1 || s[0].From != "default" || s[0].Message != "no room" || first.Spent != (run.Spent{}) {
		t.Errorf("got detour %+v and %+v spent, want one step and nothing spent", s, first.Spent)
	}
	if !second.Queued() || second.Slot.Pool != "spare" {
		t.Errorf("got %+v, want a place in the queue of spare", second.Slot)
	}
	h.wantHolders("default", 0)
	h.wantHolders("spare", 1)
	h.cancel(tasks[0])
	h.advance(time.Minute)
	h.sweep()
	h.wantState(tasks[1], run.Running)
	h.wantHolders("spare", 1)
}

// TestPlanShowsFallbacks plans a run while its fallback is open and while it is drained.
func TestPlanShowsFallbacks(t *testing.T) {
	t.Parallel()
	h := fallsBack(t)
	h.createJob("nightly", "")
	planned := func() []platform.Fallback { return h.planned(jobs.RunRequest{JobID: "nightly"}).Fallbacks }
	if open := planned(); len(open) != 1 || open[0].Pool != "spare" {
		t.Errorf("got fallbacks %+v, want the one to spare", open)
	}
	h.drain("spare", nil)
	h.clock.to(h.clock.now.Add(2 * time.Second))
	if open := planned(); len(open) != 0 {
		t.Errorf("got fallbacks %+v while spare is drained, want none", open)
	}
}

func TestFallbackNeedsAnOpenPoolAndItsReason(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(h *fixture){
		"another reason": func(h *fixture) { h.refuse(fault.Image) },
		"draining pool": func(h *fixture) {
			h.drain("spare", nil)
			h.refuse(fault.Capacity)
		},
		"deleted pool": func(h *fixture) {
			h.ok(h.service.Pools.Delete(h.Context(), client, "spare", change.Precondition{}))
			h.refuse(fault.Capacity)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fallsBack(t)
			prepare(h)
			task := h.post()
			h.advance(5 * time.Second)
			if r := h.wantState(task, run.Running); r.Slot.Pool != "default" || r.Detour != nil || r.Spent.Starts != 1 {
				t.Errorf("got pool %s, %+v and %+v spent, want a further start in the run's own pool", r.Slot.Pool, r.Detour, r.Spent)
			}
		})
	}
}

func TestFallbacksOfAPoolAreChecked(t *testing.T) {
	t.Parallel()
	h := fallsBack(t)
	on := []platform.FallbackReason{platform.FallbackCapacity}
	for name, row := range map[string]struct {
		pool      string
		fallbacks []platform.Fallback
		code      fault.Code
		field     string
	}{
		"unknown pool":              {"default", []platform.Fallback{{Pool: "spare", On: on}, {Pool: "moon", On: on}}, fault.Unprocessable, "fallback.1.pool"},
		"cycle":                     {"spare", []platform.Fallback{{Pool: "default", On: on}}, fault.Unprocessable, "fallback.0.pool"},
		"itself":                    {"spare", []platform.Fallback{{Pool: "spare", On: on}}, fault.InvalidRequest, "fallback.0.pool"},
		"twice":                     {"default", []platform.Fallback{{Pool: "spare", On: on}, {Pool: "spare", On: on}}, fault.InvalidRequest, "fallback.1.pool"},
		"malformed pool":            {"default", []platform.Fallback{{Pool: "Spare", On: on}}, fault.InvalidRequest, "fallback.0.pool"},
		"no reason":                 {"default", []platform.Fallback{{Pool: "spare"}}, fault.InvalidRequest, "fallback.0.on"},
		"unknown reason":            {"default", []platform.Fallback{{Pool: "spare", On: []platform.FallbackReason{"capacity", "exit"}}}, fault.InvalidRequest, "fallback.0.on.1"},
		"throttled without time":    {"default", []platform.Fallback{{Pool: "spare", On: []platform.FallbackReason{"throttled"}}}, fault.InvalidRequest, "fallback.0.throttledSeconds"},
		"time without throttled":    {"default", []platform.Fallback{{Pool: "spare", On: on, ThrottledFor: time.Second}}, fault.InvalidRequest, "fallback.0.throttledSeconds"},
		"more than a pool can have": {"default", make([]platform.Fallback, 11), fault.InvalidRequest, "fallback"},
	} {
		_, _, err := h.service.Pools.Put(t.Context(), client, row.pool, pools.Definition{Limit: 1, Fallbacks: row.fallbacks}, change.Precondition{})
		if f := fault.Of(err); err == nil || f.Code != row.code || f.Field != row.field {
			t.Errorf("%s: got %v of field %q, want %s of %s", name, err, fault.Of(err).Field, row.code, row.field)
		}
	}
}
