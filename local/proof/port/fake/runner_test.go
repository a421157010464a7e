package fake_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

func program(p fake.Process) int {
	return porttest.RunnerProgram(func(key string) string { return p.Env[key] }, p.Terminated, p.Killed)
}

func TestRunner(t *testing.T) {
	t.Parallel()
	porttest.Runner(t, func(t *testing.T) porttest.RunnerHarness {
		next := fake.Applied // the fate of the next launch
		r := fake.NewRunner(fake.RunnerConfig{
			Programs: map[string]fake.Program{"program": program}, Clock: clock.System{}, Complain: t.Errorf,
			Plan: func(c fake.Call) fake.Fate {
				if c.Method != "Launch" {
					return fake.Applied
				}
				fate := next
				next = fake.Applied
				return fate
			},
		})
		t.Cleanup(r.Close)
		return porttest.RunnerHarness{
			Runner: r, Image: "program", NoImage: "nothing", Unknown: port.Machine{Runner: "fake", ID: "999999"},
			Jam:      func(_ *testing.T, name string) { r.Jam(name, fault.New(fault.Image, "manifest unknown")) },
			Occupy:   func(_ *testing.T, name string) { r.Occupy(name) },
			FailPart: func(_ *testing.T, m port.MachineStatus) { r.FailPart(m.Name) },
			Fault: func(_ *testing.T, name string, how porttest.RunnerFault) {
				switch how {
				case porttest.RunnerThrottles:
					r.Refuse(name, fault.New(fault.Throttled, "too many"))
				case porttest.RunnerIsFull:
					r.Refuse(name, fault.New(fault.Capacity, "no room"))
				case porttest.RunnerLosesRequest:
					next = fake.Lost
				case porttest.RunnerLosesAnswer:
					next = fake.Unsure
				}
			},
		}
	})
}

func TestRunnerReportsMisuse(t *testing.T) {
	t.Parallel()
	var reports []string
	r := fake.NewRunner(fake.RunnerConfig{
		Programs: map[string]fake.Program{"program": program}, Clock: clock.System{},
		Complain: func(format string, _ ...any) { reports = append(reports, format) },
	})
	defer r.Close()
	if err := r.List(t.Context(), func(port.MachineStatus) bool { return true }); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.Launch(ctx, port.LaunchSpec{Name: "m", Image: "program"}); err != nil {
		t.Error(err)
	}
	if _, err := r.Wait(ctx, r.Machines()[0].Machine, port.MachineEnding, 0); err != nil {
		t.Error(err)
	}
	for i, want := range []string{"without a deadline", "incomplete owner", "Wait for"} {
		if i >= len(reports) || !strings.Contains(reports[i], want) {
			t.Errorf("got reports %q, want %q", reports, want)
		}
	}
}

func TestVirtualClockEndsGraceAndWaits(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(time.Date(2025, 5, 1, 0, 0, 0, 0, time.UTC))
	r := fake.NewRunner(fake.RunnerConfig{
		Clock:    now,
		Programs: map[string]fake.Program{"stubborn": func(p fake.Process) int { <-p.Killed; return 1 }},
	})
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := r.Launch(ctx, port.LaunchSpec{
		Name: "m", Image: "stubborn", Owner: port.MachineOwner{Tenant: "t", RunID: "r", Attempt: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if m, err = r.Wait(ctx, m.Machine, port.MachineRunning, time.Minute); err != nil || m.Phase != port.MachineRunning {
		t.Fatalf("got %+v, %v", m, err)
	}
	if err := r.Stop(ctx, m.Machine, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	now.Advance(30 * time.Second)
	if m, err = r.Wait(ctx, m.Machine, port.MachineGone, time.Minute); err != nil || m.Exit == nil || m.Exit.Signal != 9 {
		t.Errorf("got %+v, %v", m, err)
	}
	if want := now.Now(); !m.Exit.At.Equal(want) {
		t.Errorf("got end at %v, want %v", m.Exit.At, want)
	}
}
