package runner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/runner"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

func program(p fake.Process) int {
	return porttest.RunnerProgram(func(key string) string { return p.Env[key] }, p.Terminated, p.Killed)
}

// waits is a program that runs until its machine is killed.
func waits(p fake.Process) int {
	<-p.Killed
	return 1
}

// platforms are two fakes behind one Runner. The first one is the default.
type platforms struct {
	*runner.Runner
	first, second *fake.Runner
}

func setup(t *testing.T, plan fake.Plan) platforms {
	t.Helper()
	one := func(kind string) *fake.Runner {
		r := fake.NewRunner(fake.RunnerConfig{
			Kind: kind, Programs: map[string]fake.Program{"program": program, "waits": waits}, Clock: clock.System{}, Complain: t.Errorf, Plan: plan,
		})
		t.Cleanup(r.Close)
		return r
	}
	p := platforms{first: one("first"), second: one("second")}
	var err error
	p.Runner, err = runner.New("alias", map[string]port.Runner{"first": p.first, "alias": p.first, "second": p.second})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// on is a Runner whose launches name the runner.
type on struct {
	*runner.Runner
	name string
}

func (o on) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	spec.Runner = o.name
	return o.Runner.Launch(ctx, spec)
}

// TestNoRunner launches and lists nothing in a deployment without runners.
func TestNoRunner(t *testing.T) {
	t.Parallel()
	none, err := runner.New("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Launch(t.Context(), port.LaunchSpec{Name: "m"}); !fault.Is(err, fault.LaunchRefused) || !strings.Contains(err.Error(), "no machines") {
		t.Errorf("got %v, want a refusal", err)
	}
	if err := none.List(t.Context(), func(port.MachineStatus) bool { t.Error("got a machine"); return false }); err != nil {
		t.Error(err)
	}
	if _, err := runner.New("missing", map[string]port.Runner{"first": fake.NewRunner(fake.RunnerConfig{Clock: clock.System{}})}); err == nil {
		t.Error("unknown default: got no error")
	}
}

// TestListOfOneRunner lists only the machines of one runner.
func TestListOfOneRunner(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, name := range []string{"first", "second"} {
		spec := port.LaunchSpec{Name: "m-" + name, Image: "waits", Owner: port.MachineOwner{Tenant: "t", RunID: "r-" + name, Attempt: 1}, MemoryMB: 256, CPUs: 1}
		if _, err := (on{p.Runner, name}).Launch(ctx, spec); err != nil {
			t.Fatal(err)
		}
	}
	for asked, want := range map[string]string{"": "r-first", "second": "r-second"} {
		var runs []string
		err := p.ListOf(ctx, asked, func(m port.MachineStatus) bool { runs = append(runs, m.Owner.RunID); return true })
		if err != nil || !slices.Equal(runs, []string{want}) {
			t.Errorf("runner %q: got machines of %v and %v, want that of %s", asked, runs, err, want)
		}
	}
	if err := p.ListOf(ctx, "third", func(port.MachineStatus) bool { return true }); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v for a runner that is not configured, want Unavailable", err)
	}
}

func TestRunner(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "alias", "first", "second"} {
		t.Run("runner "+name, func(t *testing.T) {
			t.Parallel()
			porttest.Runner(t, func(t *testing.T) porttest.RunnerHarness {
				next := fake.Applied // the outcome of the next launch
				p := setup(t, func(c fake.Call) fake.Fate {
					if c.Method != "Launch" {
						return fake.Applied
					}
					fate := next
					next = fake.Applied
					return fate
				})
				used, kind := p.first, "first"
				if name == "second" {
					used, kind = p.second, "second"
				}
				return porttest.RunnerHarness{
					Runner: on{p.Runner, name}, Image: "program", NoImage: "nothing", Unknown: port.Machine{Runner: kind, ID: "999999"},
					Occupy:   func(_ *testing.T, name string) { used.Occupy(name) },
					FailPart: func(_ *testing.T, m port.MachineStatus) { used.FailPart(m.Name) },
					Fault: func(_ *testing.T, name string, how porttest.RunnerFault) {
						switch how {
						case porttest.RunnerThrottles:
							used.Refuse(name, fault.New(fault.Throttled, "too many"))
						case porttest.RunnerIsFull:
							used.Refuse(name, fault.New(fault.Capacity, "no room"))
						case porttest.RunnerLosesRequest:
							next = fake.Lost
						case porttest.RunnerLosesAnswer:
							next = fake.Unsure
						}
					},
				}
			})
		})
	}
}

func launch(t *testing.T, p platforms, on, name string) port.MachineStatus {
	t.Helper()
	m, err := p.Launch(limited(t), port.LaunchSpec{
		Placement: platform.Placement{Runner: on}, Name: name, Image: "waits", MemoryMB: 256, Owner: port.MachineOwner{Tenant: "acme", RunID: name, Attempt: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestListHasTheMachinesOfAllRunners(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	launch(t, p, "", "a")
	launch(t, p, "second", "b")
	list := func() (names []string, err error) {
		err = p.List(limited(t), func(m port.MachineStatus) bool {
			names = append(names, m.Runner+" "+m.Name)
			return true
		})
		slices.Sort(names)
		return names, err
	}
	if got, err := list(); err != nil || !slices.Equal(got, []string{"first a", "second b"}) {
		t.Fatalf("got %v, %v", got, err)
	}
	p.first.FailPart("a")
	got, err := list()
	if !slices.Equal(got, []string{"second b"}) || !fault.Is(err, fault.Unavailable) || strings.Count(err.Error(), "runner alias: ") != 1 {
		t.Errorf("a runner fails: got %v, %v", got, err)
	}
	p.second.FailPart("b")
	if got, err := list(); len(got) > 0 || err == nil || !strings.Contains(err.Error(), "runner alias: ") || !strings.Contains(err.Error(), "runner second: ") {
		t.Errorf("both runners fail: got %v, %v", got, err)
	}
}

func TestUnknownRunnerProvesNothing(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	ctx := limited(t)
	_, err := p.Launch(ctx, port.LaunchSpec{Placement: platform.Placement{Runner: "moon"}, Name: "a", Image: "program"})
	if !fault.Is(err, fault.LaunchRefused) || !strings.Contains(err.Error(), "alias, first, second") {
		t.Errorf("Launch: got %v, want LaunchRefused with the configured runners", err)
	}
	of := port.Machine{Runner: "moon", ID: "1"}
	_, inspect := p.Inspect(ctx, of)
	_, wait := p.Wait(ctx, of, port.MachineGone, time.Second)
	_, logs := p.Logs(ctx, of)
	for call, err := range map[string]error{"Inspect": inspect, "Wait": wait, "Logs": logs, "Stop": p.Stop(ctx, of, 0), "Destroy": p.Destroy(ctx, of)} {
		if !fault.Is(err, fault.Unavailable) || errors.Is(err, port.ErrNotFound) {
			t.Errorf("%s: got %v, want Unavailable", call, err)
		}
	}
	if _, err := runner.New("moon", map[string]port.Runner{"first": p.first}); err == nil {
		t.Error("unknown default: got no error")
	}
}

// able is a runner with all capabilities.
type able struct{ *fake.Runner }

func (able) StartLimits(where platform.Placement) []fleet.StartPace {
	return []fleet.StartPace{{App: platform.SettingsOf[platform.FlySettings](where).Apps[0], Interval: time.Second}}
}

func (able) AppOf(where platform.Placement, name string) string {
	return platform.SettingsOf[platform.FlySettings](where).Apps[0] + name
}

func (able) Logs(context.Context, port.Machine) ([]byte, error) { return []byte("text"), nil }

func (able) Prepare(_ context.Context, spec port.WarmSpec) (port.MachineStatus, error) {
	return port.MachineStatus{Name: spec.Name}, nil
}

func (able) StartWarm(_ context.Context, m port.Machine, _ port.LaunchSpec) (port.MachineStatus, error) {
	return port.MachineStatus{Machine: m}, nil
}

func (able) Recycle(_ context.Context, m port.Machine, spec port.WarmSpec) (port.MachineStatus, error) {
	return port.MachineStatus{Machine: m, Name: spec.Name}, nil
}

func TestWarmMachinesAreThoseOfTheRunner(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	both, err := runner.New("first", map[string]port.Runner{"first": p.first, "able": able{p.second}})
	if err != nil {
		t.Fatal(err)
	}
	spec := port.WarmSpec{Placement: platform.Placement{Runner: "able"}, Name: "n"}
	if m, err := both.Prepare(t.Context(), spec); err != nil || m.Name != "n" {
		t.Errorf("got %+v, %v, want a prepared machine", m, err)
	}
	at := port.Machine{Runner: "able", ID: "1"}
	if m, err := both.StartWarm(t.Context(), at, port.LaunchSpec{}); err != nil || m.Machine != at {
		t.Errorf("got %+v, %v, want the started machine", m, err)
	}
	if m, err := both.Recycle(t.Context(), at, spec); err != nil || m.Machine != at || m.Name != "n" {
		t.Errorf("got %+v, %v, want the recycled machine", m, err)
	}
	if _, err := both.Prepare(t.Context(), port.WarmSpec{}); !fault.Is(err, fault.LaunchRefused) {
		t.Errorf("a runner without warm machines: got %v, want %s", err, fault.LaunchRefused)
	}
	at.Runner = "first"
	if _, err := both.Recycle(t.Context(), at, spec); !fault.Is(err, fault.LaunchRefused) {
		t.Errorf("a runner without warm machines: got %v, want %s", err, fault.LaunchRefused)
	}
	if _, err := both.StartWarm(t.Context(), at, port.LaunchSpec{}); !fault.Is(err, fault.LaunchRefused) {
		t.Errorf("a runner without warm machines: got %v, want %s", err, fault.LaunchRefused)
	}
}

func TestCapabilitiesAreThoseOfTheRunner(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	both, err := runner.New("first", map[string]port.Runner{"first": p.first, "able": able{p.second}})
	if err != nil {
		t.Fatal(err)
	}
	where := platform.Placement{Runner: "able", Settings: &platform.FlySettings{Apps: []string{"app"}}}
	if got := both.StartLimits(where); len(got) != 1 || got[0].App != "app" || both.AppOf(where, "1") != "app1" {
		t.Errorf("got %v, %q", got, both.AppOf(where, "1"))
	}
	if got := both.StartLimits(platform.Placement{}); len(got) != 0 || both.AppOf(platform.Placement{}, "1") != "" {
		t.Errorf("a runner without limits: got %v", got)
	}
	if text, err := both.Logs(t.Context(), port.Machine{Runner: "able", ID: "1"}); err != nil || string(text) != "text" {
		t.Errorf("got log %q, %v", text, err)
	}
	if _, err := both.Logs(t.Context(), port.Machine{Runner: "first", ID: "1"}); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("a runner without logs: got %v, want ErrNotFound", err)
	}
}
