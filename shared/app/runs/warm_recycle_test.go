package runs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

func recycling() *platform.Warm { return &platform.Warm{Min: 1, Max: 2, After: platform.WarmRecycle} }

// wantSecond starts a run on the machine of an earlier one.
func (h *fixture) wantSecond(first string) string {
	h.Helper()
	h.wantWarm(0, 1, 0, 0)
	task := h.post()
	r := h.wantState(task, run.Running)
	m := h.runner.launched[0]
	if len(h.runner.launched) != 1 || r.Attempt.Machine.ID != m.ID || m.spec.Env["TASK_ID"] != task || r.Attempt.Machine.Version != m.Version {
		h.Errorf("got machine %+v of %d, want the recycled one with the environment of %s", r.Attempt.Machine, len(h.runner.launched), task)
	}
	for name, value := range m.spec.Env {
		if strings.Contains(value, first) {
			h.Errorf("got variable %s of the earlier run", name)
		}
	}
	return task
}

// TestMachineIsRecycledAfterACleanExit runs two runs on one machine. It is destroyed when it
// reaches the highest age, counted from its creation.
func TestMachineIsRecycledAfterACleanExit(t *testing.T) {
	t.Parallel()
	settings := recycling()
	settings.MaxAge = time.Hour
	h := warmPool(t, settings)
	created := h.clock.now
	first := h.post()
	h.wantState(first, run.Running)
	h.succeed(first)
	if got := h.runner.last(); got.Reuse.ID == "" || got.spec.Env["TASK_ID"] != first {
		t.Errorf("got machine %+v, want it kept after its run", got.MachineStatus)
	}
	h.sweep()
	if got := h.runner.last(); len(got.spec.Env) != 0 || got.Owner != (port.MachineOwner{}) {
		t.Errorf("got a recycled machine of %+v with %v, want one without an environment", got.Owner, got.spec.Env)
	}
	second := h.wantSecond(first)
	h.succeed(second)
	h.clock.to(created.Add(time.Hour))
	h.sweep()
	h.wantWarm(0, 1, 0, 0)
	if got := h.runner.live(); got != 1 || h.runner.launched[0].Reuse.ID != "" {
		t.Errorf("got %d live machines, want a new one in place of the old one", got)
	}
}

// TestRecycledMachinesStayUpToTheMaximum recycles a machine that was replaced while it ran.
func TestRecycledMachinesStayUpToTheMaximum(t *testing.T) {
	t.Parallel()
	h := warmPool(t, recycling())
	for range 3 {
		task := h.post()
		h.wantState(task, run.Running)
		h.sweep()
		h.succeed(task)
		h.sweep()
		h.wantWarm(0, 2, 0, 0)
	}
	h.clock.to(h.clock.now.Add(time.Hour))
	h.sweep()
	h.wantWarm(0, 2, 0, 0)
	if got := len(h.runner.launched); got != 2 {
		t.Errorf("got %d machines for 3 runs, want 2", got)
	}
	h.setWarm(&platform.Warm{Min: 1, Max: 2})
	h.clock.to(h.clock.now.Add(time.Minute))
	h.sweep()
	h.wantWarm(0, 1, 0, 0)
}

// TestMachineIsNotRecycled ends machines, or changes their pools, so that no other attempt may
// have them.
func TestMachineIsNotRecycled(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *fixture, m *machine){
		"code":    func(_ *fixture, m *machine) { m.exit(1) },
		"signal":  func(_ *fixture, m *machine) { m.Exit = &port.Exit{Signal: 9} },
		"memory":  func(_ *fixture, m *machine) { m.Exit = &port.Exit{OOM: true} },
		"stopped": func(_ *fixture, m *machine) { m.Exit = &port.Exit{Requested: true} },
		"unknown": func(_ *fixture, m *machine) { m.Exit = nil },
		"image":   func(_ *fixture, m *machine) { m.Digest = "sha256:2" },
		"tenant":  func(_ *fixture, m *machine) { m.Reuse.Tenant = "other" },
		"owner":   func(_ *fixture, m *machine) { m.Owner.Attempt++ },
		"drain":   func(h *fixture, _ *machine) { h.drain("default", nil) },
		"setting": func(h *fixture, _ *machine) { h.setWarm(&platform.Warm{Min: 1, Max: 2}) },
		"off":     func(h *fixture, _ *machine) { h.setWarm(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := warmPool(t, recycling())
			task := h.post()
			h.wantState(task, run.Running)
			h.succeed(task)
			m := h.runner.last()
			end(h, m)
			h.clock.to(h.clock.now.Add(2 * time.Second))
			h.sweep()
			if m.Phase != port.MachineGone || m.Reuse.ID != "" || m.Warm.ID != "" {
				t.Errorf("got machine %+v, want it destroyed", m.MachineStatus)
			}
		})
	}
}

// TestImageChangesWhileAMachineIsRecycled destroys a machine that the call gives another image.
func TestImageChangesWhileAMachineIsRecycled(t *testing.T) {
	t.Parallel()
	h := warmPool(t, recycling())
	task := h.post()
	h.wantState(task, run.Running)
	h.succeed(task)
	h.runner.digest = "sha256:2"
	h.sweep()
	if m := h.runner.launched[0]; m.Phase != port.MachineGone {
		t.Errorf("got machine %+v, want it destroyed", m.MachineStatus)
	}
}

// TestRecyclingSurvivesACrash loses the call that recycles a machine, or its answer. The next
// sweep repeats it.
func TestRecyclingSurvivesACrash(t *testing.T) {
	t.Parallel()
	lost := func() error { return fault.New(fault.Unavailable, "no answer") }
	for name, crash := range map[string]func(r *runner){
		"before": func(r *runner) { r.beforeRecycle = lost },
		"after":  func(r *runner) { r.duringRecycle = lost },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := warmPool(t, recycling())
			task := h.post()
			h.wantState(task, run.Running)
			h.succeed(task)
			crash(h.runner)
			if err := h.service.Sweep(h.Context(), 0); !fault.Is(err, fault.Unavailable) {
				t.Errorf("got %v of the sweep, want %s", err, fault.Unavailable)
			}
			h.wantWarm(0, 0, 0, 0)
			if got := h.health().Warm[platform.WarmRecycling]; got != 1 {
				t.Errorf("got %d machines that are recycled, want 1", got)
			}
			h.sweep()
			h.wantSecond(task)
		})
	}
}

// TestLateCallsSpareARecycledMachine shows a sweep the machine as that of its earlier attempt:
// the machine has another attempt, which continues.
func TestLateCallsSpareARecycledMachine(t *testing.T) {
	t.Parallel()
	h := warmPool(t, recycling())
	task := h.post()
	h.wantState(task, run.Running)
	earlier := h.runner.last().MachineStatus
	h.succeed(task)
	h.sweep()
	second := h.wantSecond(task)
	h.runner.lagging = []port.MachineStatus{earlier}
	h.sweep()
	if r := h.wantState(second, run.Running); r.Attempt.Number != 1 || h.runner.launched[0].Phase != port.MachineRunning {
		t.Errorf("got attempt %d on machine %+v, want the first one on a machine that runs", r.Attempt.Number, h.runner.launched[0].MachineStatus)
	}
}

// TestEndOfAKeptMachineIsCommitted destroys the machine of a run that is cancelled. The runner
// fails the test if the record of the machine is not ending before that.
func TestEndOfAKeptMachineIsCommitted(t *testing.T) {
	t.Parallel()
	h := warmPool(t, recycling())
	task := h.post()
	h.wantState(task, run.Running)
	h.runner.ignoresSIGTERM = true
	h.cancel(task)
	h.advance(10 * time.Minute)
	if r := h.record(task); !r.State.Terminal() {
		t.Errorf("got %s, want an end", r.State)
	}
	h.sweep()
	if m := h.runner.launched[0]; m.Phase != port.MachineGone || m.Reuse.ID != "" {
		t.Errorf("got machine %+v, want it destroyed", m.MachineStatus)
	}
}

// TestKeptMachineThatDoesNotStartIsReplaced gives up a claimed machine of a pool that recycles.
func TestKeptMachineThatDoesNotStartIsReplaced(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 2, Max: 2, After: platform.WarmRecycle})
	for _, m := range h.runner.launched {
		m.stuck = true
	}
	task := h.post()
	r := h.wantState(task, run.Running)
	if r.Attempt.StuckWarm != 2 || r.Attempt.Machine.ID != "m3" {
		t.Errorf("got attempt %+v, want it on a new machine after two stuck ones", r.Attempt)
	}
	h.sweep()
	if got := h.runner.live(); got != 3 {
		t.Errorf("got %d live machines, want the run's and two warm ones", got)
	}
}

// TestProgramThatEndsByItsExitIsRecycled recycles the machine of a program that reports nothing:
// the run ends without destroying it.
func TestProgramThatEndsByItsExitIsRecycled(t *testing.T) {
	t.Parallel()
	h := warmPool(t, recycling())
	task := h.runProgram(spec.Program{}, 0)
	if m := h.runner.last(); m.ID != "m1" || m.Reuse.ID == "" {
		t.Fatalf("got machine %+v, want the warm one", m.MachineStatus)
	}
	h.sweep()
	h.wantState(task, run.Completed)
	h.sweep()
	h.wantWarm(0, 2, 0, 0)
	if m := h.runner.launched[0]; m.Warm.ID == "" {
		t.Errorf("got machine %+v, want it recycled", m.MachineStatus)
	}
}

// TestGivenUpMachineIsNotStarted ends the process after it has committed that a kept machine is
// destroyed. The repeated launch must not start that machine.
func TestGivenUpMachineIsNotStarted(t *testing.T) {
	t.Parallel()
	h := warmPool(t, recycling())
	h.runner.beforeWarm = func() error {
		have, err := h.store.WarmMachines(t.Context(), platform.PoolRef{Tenant: client.Tenant, ID: "default"})
		h.ok(err)
		have[0].Phase = platform.WarmEnding
		h.ok(h.store.SaveWarm(t.Context(), have[0]))
		return fault.New(fault.Unavailable, "no answer")
	}
	task := h.post()
	h.advance(time.Minute)
	h.sweep()
	r := h.wantState(task, run.Running)
	if r.Attempt.Number != 1 || r.Attempt.Machine.ID == "m1" {
		t.Errorf("got attempt %d on %s, want the first one on a new machine", r.Attempt.Number, r.Attempt.Machine.ID)
	}
}

// TestMachineWhoseWorkerHasCalledIsNotGivenUp lets the worker of a machine that the platform does
// not show as running call at the start deadline: the machine stays.
func TestMachineWhoseWorkerHasCalledIsNotGivenUp(t *testing.T) {
	t.Parallel()
	h := warmPool(t, &platform.Warm{Min: 1, Max: 1})
	m := h.runner.last()
	m.stuck = true
	m.awaited = func() { h.ok(h.worker(m).started(false)) }
	r := h.wantState(h.post(), run.Running)
	if r.Attempt.Number != 1 || r.Attempt.Machine.ID != m.ID || m.Phase == port.MachineGone {
		t.Errorf("got attempt %+v with the machine %s, want the first one on it", r.Attempt, m.Phase)
	}
}
