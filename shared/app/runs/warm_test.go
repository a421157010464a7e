package runs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// warmPool gives the default pool warm machines, and sweeps once.
func warmPool(t *testing.T, w *platform.Warm) *fixture {
	t.Helper()
	h := setup(t, func(c *runs.Config) {
		c.Runners = platform.RunnerOffer{Runners: []string{platform.RunnerProcess}}
		c.MaxMachines = 10
	})
	h.setWarm(w)
	h.sweep()
	return h
}

func (h *fixture) setWarm(w *platform.Warm) {
	h.Helper()
	_, _, err := h.service.Pools.Put(h.Context(), client, "default", pools.Definition{Limit: 10, Warm: w}, change.Precondition{})
	h.ok(err)
	h.clock.to(h.clock.now.Add(2 * time.Second)) // longer than poolAge
}

func (h *fixture) wantWarm(creating, ready, claimed, ending int) {
	h.Helper()
	want := map[platform.WarmState]int{platform.WarmCreating: creating, platform.WarmReady: ready, platform.WarmClaimed: claimed, platform.WarmEnding: ending}
	got := h.health().Warm
	for state, n := range want {
		if got[state] != n {
			h.Errorf("got warm machines %v, want %v", got, want)
			return
		}
	}
}

// TestWarmMachineStartsARun starts two runs on a pool with one warm machine: the first gets
// it, the second a new one, and the next sweep creates another warm one.
func TestWarmMachineStartsARun(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 1, Max: 2})
	h.wantWarm(0, 1, 0, 0)
	warm, cold := h.post(), h.post()
	h.wantState(warm, run.Running)
	h.wantState(cold, run.Running)
	if got := h.machineOf(warm); h.runner.warmStarts != 1 || got.ID != "m1" || got.spec.Env["TASK_ID"] != warm {
		t.Errorf("got machine %s after %d warm starts, want m1 with the environment of the run", got.ID, h.runner.warmStarts)
	}
	h.wantWarm(0, 0, 1, 0)
	h.sweep()
	h.wantWarm(0, 1, 1, 0)
	h.wantState(warm, run.Running)
	h.succeed(warm)
	h.succeed(cold)
	h.sweep()
	h.wantWarm(0, 1, 0, 0)
	if got := h.runner.live(); got != 1 {
		t.Errorf("got %d live machines, want the warm one", got)
	}
}

// TestWarmMachinesThatDoNotStartAreReplaced claims two machines whose hosts do not start
// them. Each is destroyed after its deadline, and the attempt gets a new machine.
func TestWarmMachinesThatDoNotStartAreReplaced(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 3, Max: 3})
	for _, m := range h.runner.launched {
		m.stuck = true
	}
	before := h.clock.now
	task := h.post()
	r := h.wantState(task, run.Running)
	if took := h.clock.now.Sub(before); took < 20*time.Second || took > 30*time.Second {
		t.Errorf("got a start after %s, want two deadlines of 10s", took)
	}
	if r.Attempt.StuckWarm != 2 || r.Attempt.Warm != nil || r.Attempt.Number != 1 || r.Attempt.Machine.ID != "m4" {
		t.Errorf("got attempt %+v, want the first one on a new machine after two stuck ones", r.Attempt)
	}
	h.sweep()
	h.wantWarm(0, 3, 0, 0)
	if got := h.runner.live(); got != 4 {
		t.Errorf("got %d live machines, want the run's and three warm ones", got)
	}
}

// TestStuckWarmMachineIsNotReplacedBeforeItIsGone gives up a machine that cannot be destroyed: its
// program may start at any time, so that the attempt gets no other machine.
func TestStuckWarmMachineIsNotReplacedBeforeItIsGone(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 2, Max: 2})
	for _, m := range h.runner.launched {
		m.stuck = true
	}
	h.runner.indestructible = true
	task := h.post()
	h.advance(30 * time.Second) // the start limit is a minute
	r := h.wantState(task, run.ContainerCreating)
	if r.Attempt.StuckWarm != 0 || r.Attempt.Warm == nil || h.runner.warmStarts != 1 || len(h.runner.launched) != 2 {
		t.Errorf("got attempt %+v after %d warm starts on %d machines, want it on its first machine", r.Attempt, h.runner.warmStarts, len(h.runner.launched))
	}
}

// TestWarmMachineIsNotStartedAfterItsDeadline loses the call that starts a claimed machine until
// the start deadline is over: the repeated launch gives the machine up.
func TestWarmMachineIsNotStartedAfterItsDeadline(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 1, Max: 1})
	h.runner.beforeWarm = func() error {
		h.clock.to(h.clock.now.Add(11 * time.Second))
		return fault.New(fault.Unavailable, "no answer")
	}
	task := h.post()
	h.advance(10 * time.Second) // the delay of the repeated call
	r := h.wantState(task, run.Running)
	if r.Attempt.Number != 1 || r.Attempt.StuckWarm != 1 || r.Attempt.Machine.ID != "m2" || h.runner.warmStarts != 0 {
		t.Errorf("got attempt %+v after %d warm starts, want the first one on a new machine", r.Attempt, h.runner.warmStarts)
	}
}

// TestClaimIsTriedAgainAfterAChangeOfItsRun commits a check of the execution of a run while it
// claims a machine: the run still gets the machine.
func TestClaimIsTriedAgainAfterAChangeOfItsRun(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 1, Max: 1})
	h.store.afterWarm = func() {
		held, err := h.store.Holders(h.Context(), client.Tenant, "default", 1)
		h.ok(err)
		r, err := h.store.Load(h.Context(), held[0])
		h.ok(err)
		d, err := run.Decide(r, run.ExecutionChecked{}, h.clock.now)
		h.ok(err)
		h.ok(h.store.Commit(h.Context(), port.WriteOf(d)))
	}
	r := h.wantState(h.post(), run.Running)
	if r.Attempt.Machine.ID != "m1" || h.runner.warmStarts != 1 {
		t.Errorf("got machine %s after %d warm starts, want the warm one", r.Attempt.Machine.ID, h.runner.warmStarts)
	}
}

// TestClaimSurvivesACrash ends the process between the claim of a machine and the answer of
// its start: the repeated launch starts the same machine, once.
func TestClaimSurvivesACrash(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 2, Max: 2})
	h.runner.during = func(*machine) error { return fault.New(fault.Unavailable, "no answer") }
	task := h.post()
	h.sweep()
	h.advance(time.Minute)
	r := h.wantState(task, run.Running)
	if r.Attempt.Warm == nil || r.Attempt.Machine.ID != r.Attempt.Warm.Machine.ID || h.runner.warmStarts != 1 || r.Attempt.Number != 1 {
		t.Errorf("got attempt %+v after %d warm starts, want one on the claimed machine", r.Attempt, h.runner.warmStarts)
	}
}

// TestRepeatedLaunchClaimsNoMachine repeats a launch that may have created a machine, when a warm
// one has become ready: the program must not run on both.
func TestRepeatedLaunchClaimsNoMachine(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 0, Max: 1})
	var in runs.StepInput
	h.before[run.StepContainerCreating] = func(same runs.StepInput) { in = same }
	h.runner.during = func(m *machine) error {
		m.hidden = true // the sweep does not find it
		h.setWarm(&platform.Warm{Min: 1, Max: 1})
		h.sweep()
		h.wantWarm(0, 1, 0, 0)
		m.hidden = false
		return h.service.Launch(h.Context(), in)
	}
	h.wantState(h.post(), run.Running)
	if h.runner.warmStarts != 0 {
		t.Errorf("got %d warm starts after a create call, want 0", h.runner.warmStarts)
	}
}

// TestWarmMachineThatIsGoneIsSkipped destroys the machines from outside.
func TestWarmMachineThatIsGoneIsSkipped(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 1, Max: 1})
	h.runner.last().Phase = port.MachineGone
	task := h.post()
	h.wantState(task, run.Running)
	if got := h.machineOf(task); got.ID != "m2" || h.runner.warmStarts != 0 {
		t.Errorf("got machine %s, want a new one", got.ID)
	}
}

// TestWarmMachinesEndWithTheirPool ends the warm machines of a pool that drains, that has no
// warm machines any more, or that is deleted. Those of runs stay.
func TestWarmMachinesEndWithTheirPool(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *fixture){
		"drain":    func(h *fixture) { h.drain("default", nil) },
		"turn off": func(h *fixture) { h.setWarm(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := warmPool(t, &platform.Warm{Min: 3, Max: 3})
			task := h.post()
			end(h)
			h.clock.to(h.clock.now.Add(2 * time.Second))
			h.sweep()
			h.sweep()
			h.wantState(task, run.Running)
			if got := h.runner.live(); got != 1 {
				t.Errorf("got %d live machines, want that of the run", got)
			}
			if strings.Contains(h.log.String(), "WARN") {
				t.Errorf("got a warning for machines that end as they should:\n%s", h.log)
			}
		})
	}
	t.Run("delete", func(t *testing.T) {
		t.Parallel()
		h := warmPool(t, &platform.Warm{Max: 1})
		_, _, err := h.service.Pools.Put(h.Context(), client, "other", pools.Definition{Limit: 1, Warm: &platform.Warm{Min: 2, Max: 2}}, change.Precondition{})
		h.ok(err)
		h.sweep()
		if got := h.runner.live(); got != 2 {
			t.Fatalf("got %d live machines, want 2", got)
		}
		h.ok(h.service.Pools.Delete(h.Context(), client, "other", change.Precondition{}))
		h.sweep()
		if got := h.runner.live(); got != 0 {
			t.Errorf("got %d live machines of a deleted pool, want none", got)
		}
	})
}

// TestWarmMachinesAreOfOneSize starts a run of another size: it gets a new machine.
func TestWarmMachinesAreOfOneSize(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 1, Max: 1, MemoryMB: 512})
	task := h.post()
	h.wantState(task, run.Running)
	if got := h.machineOf(task); got.ID != "m2" {
		t.Errorf("got machine %s, want a new one with 256 MB", got.ID)
	}
	h.wantWarm(0, 1, 0, 0)
}

// TestWarmMachinesComeAheadOfFirings creates a machine for each firing within Warm.Ahead, and
// destroys a machine a minute after no firing needs it.
func TestWarmMachinesComeAheadOfFirings(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Max: 5, Ahead: 30 * time.Minute})
	ref := h.createJob("often", `"schedule": "40,50 * * * *"`)
	h.sweep()
	h.wantWarm(0, 0, 0, 0)
	h.clock.to(epoch.Add(21 * time.Minute))
	h.sweep()
	h.wantWarm(0, 2, 0, 0)
	h.sweep()
	h.wantWarm(0, 2, 0, 0)
	_, err := h.service.Jobs.Pause(h.Context(), client, ref.ID, change.Precondition{})
	h.ok(err)
	h.sweep()
	h.wantWarm(0, 2, 0, 0)
	h.clock.to(h.clock.now.Add(time.Minute))
	h.sweep()
	h.wantWarm(0, 0, 0, 0)
	if got := h.runner.live(); got != 0 {
		t.Errorf("got %d live machines without a firing, want none", got)
	}
}

// TestCancelEndsAClaimedMachine cancels a run between the claim and the start.
func TestCancelEndsAClaimedMachine(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 1, Max: 1})
	h.runner.during = func(*machine) error { return fault.New(fault.Unavailable, "no answer") }
	task := h.post()
	h.cancel(task)
	h.advance(3 * time.Minute)
	h.wantState(task, run.Cancelled)
	h.setWarm(nil)
	h.sweep()
	if got := h.runner.live(); got != 0 {
		t.Errorf("got %d live machines, want none", got)
	}
}

// TestWarmMachineThatStartsLateEndsTheAttempt destroys a machine whose program has started
// after all: no other machine runs the same attempt.
func TestWarmMachineThatStartsLateEndsTheAttempt(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 1, Max: 1})
	h.runner.last().stuck, h.runner.last().late = true, true
	task := h.post()
	h.advance(time.Minute)
	if r := h.wantState(task, run.Running); r.Attempt.Number != 2 || r.Attempt.StuckWarm != 0 {
		t.Errorf("got attempt %+v, want the second one", r.Attempt)
	}
}

// TestClaimedMachineOutlivesItsSetting ends the setting between a claim and the start of the
// machine. A sweep leaves the machine to its attempt, and forgets it after the run.
func TestClaimedMachineOutlivesItsSetting(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 1, Max: 1})
	h.runner.beforeWarm = func() error {
		h.setWarm(nil)
		return h.service.Sweep(h.Context(), 0)
	}
	task := h.post()
	if r := h.wantState(task, run.Running); r.Attempt.Machine.ID != "m1" || h.runner.warmStarts != 1 {
		t.Errorf("got machine %s after %d warm starts, want the claimed one", r.Attempt.Machine.ID, h.runner.warmStarts)
	}
	h.wantWarm(0, 0, 1, 0)
	h.succeed(task)
	h.sweep()
	h.wantWarm(0, 0, 0, 0)
	ref := platform.PoolRef{Tenant: client.Tenant, ID: "default"}
	for _, left := range []bool{true, false} {
		if p, err := h.store.LoadPool(h.Context(), ref); err != nil || p.WarmLeft != left {
			t.Errorf("got a pool that may have warm machines: %v, %v, want %v", p.WarmLeft, err, left)
		}
		h.clock.to(h.clock.now.Add(20 * time.Minute))
		h.sweep()
	}
}

// TestOverlappingSweepsKeepTheMaximum plans a sweep before another one has created the
// machine that both plan.
func TestOverlappingSweepsKeepTheMaximum(t *testing.T) {
	t.Parallel()
	h := warmPool(t, nil)
	h.setWarm(&platform.Warm{Min: 2, Max: 2})
	h.store.afterWarm = func() { h.ok(h.service.Sweep(h.Context(), 0)) }
	h.sweep()
	if got := len(h.runner.launched); got != 2 {
		t.Errorf("got %d machines of two sweeps, want the maximum of 2", got)
	}
	h.wantWarm(0, 2, 0, 0)
}

// TestGoneWarmMachineIsDecidedAtOnce ends claimed machines while their start is awaited: one
// that ran no program is replaced, and one whose exit is unknown ends the attempt.
func TestGoneWarmMachineIsDecidedAtOnce(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		started bool
		attempt int
	}{"before its start": {false, 1}, "after its start": {true, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := warmPool(t, &platform.Warm{Min: 1, Max: 1})
			h.runner.during = func(m *machine) error {
				m.Started, m.Phase = row.started, port.MachineGone
				return nil
			}
			before := h.clock.now
			task := h.post()
			h.advance(8 * time.Second) // the delay of a retry, and less than the deadline
			if r := h.wantState(task, run.Running); r.Attempt.Number != row.attempt {
				t.Errorf("got attempt %d after %s, want %d", r.Attempt.Number, h.clock.now.Sub(before), row.attempt)
			}
		})
	}
}

// TestWarmMachinesOfAnEarlierImageAreReplaced moves the tag of the image after warm machines
// were created. A new machine of another run shows that, and the next sweep replaces those of
// the earlier image.
func TestWarmMachinesOfAnEarlierImageAreReplaced(t *testing.T) {
	t.Parallel()
	h := warmPool(t, nil)
	h.runner.digest = "sha256:1"
	h.setWarm(&platform.Warm{Min: 2, Max: 2, MemoryMB: 512})
	h.sweep()
	h.wantWarm(0, 2, 0, 0)
	h.clock.to(h.clock.now.Add(time.Second))
	h.runner.digest = "sha256:2"
	task := h.post() // of another size
	h.wantState(task, run.Running)
	h.wantWarm(0, 0, 0, 2)
	h.sweep()
	h.wantWarm(0, 2, 0, 0)
	h.clock.to(h.clock.now.Add(time.Second))
	h.wantState(h.post(), run.Running)
	h.wantWarm(0, 2, 0, 0)
}
