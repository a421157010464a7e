package fly_test

import (
	"cmp"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

func warmSpec(id string) port.WarmSpec {
	return port.WarmSpec{
		Warm: platform.WarmRef{Tenant: "acme", Pool: "p", ID: id}, WarmKey: platform.WarmKey{Image: image, CPUs: 1, MemoryMB: 256}, Name: "warm-" + id,
	}
}

func (p machinesAPI) prepare(t *testing.T, id string) port.MachineStatus {
	t.Helper()
	m, err := p.runner.Prepare(t.Context(), warmSpec(id))
	if !strings.HasPrefix(m.Digest, "sha256:") {
		t.Errorf("got digest %q, want that of the image", m.Digest)
	}
	if err != nil || m.Phase != port.MachineEnding || m.Warm != warmSpec(id).Warm || m.Owner != (port.MachineOwner{}) {
		t.Fatalf("got %+v, %v, want a stopped machine of the record", m, err)
	}
	return m
}

// running waits until the machine runs.
func (p machinesAPI) running(t *testing.T, m port.Machine) port.MachineStatus {
	t.Helper()
	for range 600 {
		now, err := p.runner.Wait(t.Context(), m, port.MachineRunning, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if now.Phase == port.MachineRunning {
			return now
		}
	}
	t.Fatal("got a machine that does not run")
	return port.MachineStatus{}
}

// TestWarmMachineIsStartedOnce prepares a machine, and starts it by many concurrent calls. It
// runs once, as the machine of the attempt, and is gone after its program.
func TestWarmMachineIsStartedOnce(t *testing.T) {
	t.Parallel()
	p := setup(t)
	m := p.prepare(t, "a")
	if again := p.prepare(t, "a"); again.ID != m.ID {
		t.Errorf("got machine %s, want the same: %s", again.ID, m.ID)
	}
	var listed []port.MachineStatus
	if err := p.runner.List(t.Context(), func(m port.MachineStatus) bool { listed = append(listed, m); return true }); err != nil || len(listed) != 1 || listed[0].Warm != m.Warm {
		t.Errorf("got list %+v, %v, want the warm machine", listed, err)
	}
	s := spec("r-x")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got, err := p.runner.StartWarm(t.Context(), m.Machine, s)
			if err != nil && !fault.Is(err, fault.Unavailable) {
				t.Errorf("got %v, want a start or %s", err, fault.Unavailable)
			}
			if err == nil && (got.Owner != s.Owner || got.Warm != (platform.WarmRef{}) || got.ID != m.ID) {
				t.Errorf("got %+v, want the machine with the attempt as its owner", got)
			}
		})
	}
	group.Wait()
	runs := p.running(t, m.Machine)
	if runs.Owner != s.Owner || runs.Name != m.Name {
		t.Errorf("got %+v, want the running machine of the attempt", runs)
	}
	other := spec("r-y")
	if _, err := p.runner.StartWarm(t.Context(), m.Machine, other); !fault.Is(err, fault.LaunchRefused) {
		t.Errorf("got %v for another attempt, want %s", err, fault.LaunchRefused)
	}
	if err := p.runner.Stop(t.Context(), runs.Machine, time.Second); err != nil {
		t.Fatal(err)
	}
	gone, err := p.runner.Wait(t.Context(), runs.Machine, port.MachineGone, 30*time.Second)
	if err != nil || gone.Phase != port.MachineGone || gone.Exit == nil {
		t.Errorf("got %+v, %v, want a machine that destroyed itself after one exit", gone, err)
	}
}

// TestStartOfAWarmMachineFails refuses the call, loses its response, or has no machine.
func TestStartOfAWarmMachineFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		rule faults.Rule
		want fault.Code // empty for a start
	}{
		"lost answer":           {faults.Rule{Kind: faults.LostAnswer, Action: faults.Update, Times: 1}, ""},
		"applied with an error": {faults.Rule{Kind: faults.BadGatewayAfter, Action: faults.Update, Times: 1}, ""},
		"not applied":           {faults.Rule{Kind: faults.BadGateway, Action: faults.Update, Times: 1}, fault.Unavailable},
		"leased":                {faults.Rule{Kind: faults.Leased, Action: faults.Update, Times: 1}, fault.Unavailable},
		"changed":               {faults.Rule{Kind: faults.Changed, Action: faults.Update, Times: 1}, ""},
		"changed again":         {faults.Rule{Kind: faults.Changed, Action: faults.Update, Times: 2}, fault.Unavailable},
		"throttled":             {faults.Rule{Kind: faults.Throttle, Action: faults.Update, Times: 1}, fault.Throttled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			m := p.prepare(t, "a")
			p.inject(t, row.rule)
			got, err := p.runner.StartWarm(t.Context(), m.Machine, spec("r-x"))
			if row.want == "" && (err != nil || got.Owner != spec("r-x").Owner) || row.want != "" && !fault.Is(err, row.want) {
				t.Errorf("got %+v, %v, want %q", got, err, row.want)
			}
			if _, err := p.runner.StartWarm(t.Context(), m.Machine, spec("r-x")); err != nil {
				t.Errorf("got %v for the repeated call, want a start", err)
			}
			p.running(t, m.Machine)
		})
	}
	p := setup(t)
	m := p.prepare(t, "a")
	if err := p.runner.Destroy(t.Context(), m.Machine); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]port.Machine{"destroyed": m.Machine, "unknown": unknown, "malformed": {Runner: "fly"}} {
		if _, err := p.runner.StartWarm(t.Context(), at, spec("r-x")); !fault.Is(err, fault.LaunchRefused) {
			t.Errorf("%s: got %v, want %s", name, err, fault.LaunchRefused)
		}
	}
}

// TestPreparedNameOfAnotherMachine finds a machine of another record under the name.
func TestPreparedNameOfAnotherMachine(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.prepare(t, "a")
	other := warmSpec("a")
	other.Warm.Tenant = "zenith"
	if m, err := p.runner.Prepare(t.Context(), other); !fault.Is(err, fault.LaunchRefused) {
		t.Errorf("got %+v, %v, want %s", m, err, fault.LaunchRefused)
	}
	other = warmSpec("b")
	other.Image = "registry.fly.io/unknown:none"
	if m, err := p.runner.Prepare(t.Context(), other); !fault.Is(err, fault.Image) {
		t.Errorf("got %+v, %v, want %s", m, err, fault.Image)
	}
}

// TestClaimIsOneCall counts the calls that start a warm machine: one, and three if the record
// has another version.
func TestClaimIsOneCall(t *testing.T) {
	t.Parallel()
	var calls counted
	p := setup(t, func(c *fly.Config) { calls.next, c.Transport = http.DefaultTransport, &calls })
	for version, want := range map[string]int64{"": 1, "01ANOTHER": 3} {
		m := p.prepare(t, "v"+strings.ToLower(version))
		if m.Version == "" {
			t.Fatalf("got %+v, want a version", m)
		}
		m.Version = cmp.Or(version, m.Version)
		calls.n.Store(0)
		if got, err := p.runner.StartWarm(t.Context(), m.Machine, spec("r-x")); err != nil || got.Version != "" {
			t.Errorf("got %+v, %v, want the machine of the attempt without a version", got, err)
		}
		if got := calls.n.Load(); got != want {
			t.Errorf("version %q: got %d calls, want %d", version, got, want)
		}
	}
}

// counted counts calls.
type counted struct {
	n    atomic.Int64
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.RoundTrip(r)
}
