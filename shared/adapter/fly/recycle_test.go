package fly_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// shellSpec returns the record of a machine whose program is a shell, so that an attempt can
// run a script.
func shellSpec(id string) port.WarmSpec {
	s := warmSpec(id)
	s.Image = shell
	return s
}

func script(name, text string, keep platform.WarmRef) port.LaunchSpec {
	s := spec(name)
	s.Image, s.Command, s.Reuse = shell, []string{"-c", text}, keep
	s.Env = map[string]string{"TOKEN": "token of " + name}
	return s
}

// runs starts a script on the machine and waits until it has ended.
func (p machinesAPI) runs(t *testing.T, m port.Machine, s port.LaunchSpec) port.MachineStatus {
	t.Helper()
	started, err := p.runner.StartWarm(t.Context(), m, s)
	if err != nil || started.Reuse != s.Reuse || started.Owner != s.Owner || started.Version == "" || started.Version == m.Version {
		t.Fatalf("got %+v, %v, want a kept machine of the attempt in another version", started, err)
	}
	ended, err := p.runner.Wait(t.Context(), started.Machine, port.MachineGone, 30*time.Second)
	if err != nil || ended.Phase != port.MachineGone || ended.Reuse != s.Reuse || ended.Owner != s.Owner || ended.Version != started.Version {
		t.Fatalf("got %+v, %v, want a stopped machine that is kept", ended, err)
	}
	return ended
}

// config returns the configuration of a machine as the API shows it.
func (p machinesAPI) config(t *testing.T, m port.Machine) (config struct {
	Env      map[string]string `json:"env"`
	Metadata map[string]string `json:"metadata"`
	Init     json.RawMessage   `json:"init"`
},
) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/v1/apps/"+m.App+"/machines/"+m.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer fly-token")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	shown := struct{ Config any }{&config}
	if err := json.Unmarshal(text, &shown); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestRecycledMachineRunsAnotherAttempt runs two attempts on one machine. The second sees no
// environment, no file, no exit and no log of the first.
func TestRecycledMachineRunsAnotherAttempt(t *testing.T) {
	t.Parallel()
	p := setup(t, func(c *fly.Config) { c.Logs = true })
	warm := shellSpec("a")
	made, err := p.runner.Prepare(t.Context(), warm)
	if err != nil {
		t.Fatal(err)
	}
	first := p.runs(t, made.Machine, script("r-1", `echo "$TOKEN"; touch "$HOME/left" "$TMPDIR/left"; exit 0`, warm.Warm))
	if first.Exit == nil || first.Exit.Code != 0 || first.Exit.Requested || !first.Started {
		t.Errorf("got exit %+v, want code 0", first.Exit)
	}
	if got := p.config(t, first.Machine); got.Env["TOKEN"] == "" {
		t.Errorf("got environment %v, want that of the attempt until it is removed", got.Env)
	}
	listed := 0
	if err := p.runner.List(t.Context(), func(m port.MachineStatus) bool {
		listed++
		return m.Reuse == warm.Warm && m.Phase == port.MachineGone
	}); err != nil || listed != 1 {
		t.Errorf("got %d listed machines, %v, want the kept one", listed, err)
	}
	again, err := p.runner.Recycle(t.Context(), first.Machine, warm)
	if err != nil || again.Warm != warm.Warm || again.Reuse != (platform.WarmRef{}) || again.Owner != (port.MachineOwner{}) ||
		again.Phase != port.MachineEnding || again.ID != made.ID || again.Version == first.Version || again.Digest != made.Digest {
		t.Fatalf("got %+v, %v, want a prepared machine in another version", again, err)
	}
	if got := p.config(t, again.Machine); len(got.Env) != 0 || strings.Contains(string(got.Init), "TOKEN") || got.Metadata["run_id"] != "" {
		t.Errorf("got configuration %+v, want none of the attempt", got)
	}
	if repeated, err := p.runner.Recycle(t.Context(), first.Machine, warm); err != nil || repeated.Version != again.Version {
		t.Errorf("got %+v, %v for the repeated call, want the same machine", repeated, err)
	}
	second := p.runs(t, again.Machine, script("r-2", `echo "$TOKEN"; ls "$HOME" "$TMPDIR" | grep left; exit 3`, warm.Warm))
	if second.ID != made.ID || second.Exit == nil || second.Exit.Code != 3 {
		t.Errorf("got %+v, want the same machine with code 3", second)
	}
	for m, want := range map[port.Machine]string{first.Machine: "token of r-1\n", second.Machine: "token of r-2\n"} {
		if got, err := p.runner.Logs(t.Context(), m); err != nil || string(got) != want {
			t.Errorf("got log %q, %v, want %q", got, err, want)
		}
	}
}

// TestLateCallsForARecycledMachine repeats the calls of an attempt after its machine was
// recycled: none starts, stops or changes the machine of the next attempt.
func TestLateCallsForARecycledMachine(t *testing.T) {
	t.Parallel()
	p := setup(t)
	warm := shellSpec("a")
	made, err := p.runner.Prepare(t.Context(), warm)
	if err != nil {
		t.Fatal(err)
	}
	s := script("r-1", "exit 0", warm.Warm)
	first := p.runs(t, made.Machine, s)
	again, err := p.runner.Recycle(t.Context(), first.Machine, warm)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := p.runner.StartWarm(t.Context(), made.Machine, s); !fault.Is(err, fault.LaunchRefused) {
		t.Errorf("got %+v, %v for the start of the earlier attempt, want %s", m, err, fault.LaunchRefused)
	}
	next := script("r-2", "sleep 60", warm.Warm)
	if _, err := p.runner.StartWarm(t.Context(), again.Machine, next); err != nil {
		t.Fatal(err)
	}
	running := p.running(t, again.Machine)
	if running.Exit != nil || running.Reuse != warm.Warm {
		t.Errorf("got %+v, want a running machine without an exit", running)
	}
	if err := p.runner.Stop(t.Context(), first.Machine, 0); err != nil {
		t.Error(err)
	}
	if m, err := p.runner.Recycle(t.Context(), first.Machine, warm); !fault.Is(err, fault.LaunchRefused) {
		t.Errorf("got %+v, %v for the machine that runs, want %s", m, err, fault.LaunchRefused)
	}
	if now, err := p.runner.Inspect(t.Context(), running.Machine); err != nil || now.Phase != port.MachineRunning || now.Owner != next.Owner {
		t.Errorf("got %+v, %v, want the next attempt running", now, err)
	}
	if err := p.runner.Stop(t.Context(), running.Machine, 0); err != nil {
		t.Fatal(err)
	}
	if m, err := p.runner.Wait(t.Context(), running.Machine, port.MachineGone, 30*time.Second); err != nil || m.Exit == nil || !m.Exit.Requested {
		t.Errorf("got %+v, %v, want a stopped machine", m, err)
	}
}

// TestRecyclingFails refuses the call, loses its response, or uses another machine.
func TestRecyclingFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		kind faults.Kind
		want fault.Code // empty for a recycled machine
	}{
		"lost answer":           {faults.LostAnswer, ""},
		"applied with an error": {faults.BadGatewayAfter, ""},
		"not applied":           {faults.BadGateway, fault.Unavailable},
		"leased":                {faults.Leased, fault.Unavailable},
		"changed":               {faults.Changed, fault.Unavailable},
		"throttled":             {faults.Throttle, fault.Throttled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			warm := shellSpec("a")
			made, err := p.runner.Prepare(t.Context(), warm)
			if err != nil {
				t.Fatal(err)
			}
			kept := p.runs(t, made.Machine, script("r-1", "exit 0", warm.Warm))
			p.inject(t, faults.Rule{Kind: row.kind, Action: faults.Update, Times: 1})
			got, err := p.runner.Recycle(t.Context(), kept.Machine, warm)
			if row.want == "" && (err != nil || got.Warm != warm.Warm) || row.want != "" && !fault.Is(err, row.want) {
				t.Errorf("got %+v, %v, want %q", got, err, row.want)
			}
			if got, err := p.runner.Recycle(t.Context(), kept.Machine, warm); err != nil || got.Warm != warm.Warm {
				t.Errorf("got %+v, %v for the repeated call, want a recycled machine", got, err)
			}
		})
	}
	p := setup(t)
	warm := shellSpec("last")
	made, err := p.runner.Prepare(t.Context(), warm)
	if err != nil {
		t.Fatal(err)
	}
	unversioned := made.Machine
	unversioned.Version = ""
	if err := p.runner.Destroy(t.Context(), made.Machine); err != nil {
		t.Fatal(err)
	}
	if _, err := p.runner.Wait(t.Context(), unversioned, port.MachineGone, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]port.Machine{"destroyed": made.Machine, "unknown": {Runner: "fly", App: unknown.App, ID: unknown.ID, Version: "v"}, "malformed": {Runner: "fly", Version: "v"}, "without a version": unversioned} {
		if m, err := p.runner.Recycle(t.Context(), at, warm); !fault.Is(err, fault.LaunchRefused) {
			t.Errorf("%s: got %+v, %v, want %s", name, m, err, fault.LaunchRefused)
		}
	}
}

// TestKeptMachineLosesItsExit uses a machine that stops without an exit event. After exitLag it
// counts as ended, without an exit.
func TestKeptMachineLosesItsExit(t *testing.T) {
	t.Parallel()
	late := &shifted{}
	p := setup(t, func(c *fly.Config) { late.Clock, c.Clock = c.Clock, late })
	p.inject(t, faults.Rule{Kind: faults.LostExit})
	warm := shellSpec("a")
	made, err := p.runner.Prepare(t.Context(), warm)
	if err != nil {
		t.Fatal(err)
	}
	started, err := p.runner.StartWarm(t.Context(), made.Machine, script("r-1", "exit 0", warm.Warm))
	if err != nil {
		t.Fatal(err)
	}
	for range 60 { // each returns when the machine has stopped, or after a second
		m, err := p.runner.Wait(t.Context(), started.Machine, port.MachineGone, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if m.Phase == port.MachineGone {
			t.Fatalf("got %+v, want a machine whose exit may follow", m)
		}
		if m.Phase == port.MachineEnding {
			break
		}
	}
	late.by.Store(int64(time.Minute))
	if m, err := p.runner.Inspect(t.Context(), started.Machine); err != nil || m.Phase != port.MachineGone || m.Exit != nil || m.Reuse != warm.Warm {
		t.Errorf("got %+v, %v, want an end without an exit", m, err)
	}
}

// shifted is a clock with an offset.
type shifted struct {
	clock.Clock
	by atomic.Int64
}

// Now implements clock.Clock.
func (s *shifted) Now() time.Time { return s.Clock.Now().Add(time.Duration(s.by.Load())) }
