package flymachines_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/superfly/fly-go"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// serve runs a server in its own process. It prints its address and runs until its standard
// input closes or it is killed.
func serve(options string) int {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cfg := flymachines.Config{
		Token: token, Apps: []string{app}, Images: map[string][]string{image: {"/bin/bash", "-c"}},
		Starter: flymachines.Processes{Command: []string{self, "supervise"}, Clock: clock.System{}},
		Clock:   clock.System{}, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	var o serveOptions
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		panic(err)
	}
	cfg.Dir, cfg.Faults = o.Dir, o.Faults
	server, err := flymachines.Open(cfg)
	if err != nil {
		panic(err)
	}
	fmt.Println(httptest.NewServer(server).URL)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		panic(err)
	}
	return 0
}

type serveOptions struct {
	Dir    string
	Faults faults.Plan
}

// crash opens a server in another process; kill sends it SIGKILL.
func crash(t *testing.T, o serveOptions) (m *machines, kill func()) {
	t.Helper()
	options, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "serve", string(options))
	cmd.Stderr = logTo{t}
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("the server was not killed")
		}
		hold.Close()
	})
	t.Cleanup(kill)
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, strings.TrimSpace(address)), kill
}

// after opens a server in this process on the folder of the killed server.
func after(t *testing.T, dir string) *machines {
	t.Helper()
	return setup(t, func(c *flymachines.Config) { c.Dir = dir })
}

func TestMachinesSurviveCrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, kill := crash(t, serveOptions{Dir: dir})
	ended := m.launch(m.input("ended-before", "exit 3"))
	if exit := m.exit(ended.ID); exit.ExitCode != 3 {
		t.Fatalf("exit = %+v", exit)
	}
	// The program blocks on EAR before it exits, so that it exits while no server is running.
	during := m.launch(m.input("ends-between", saying("$$")+`exec 3<>/dev/tcp/127.0.0.1/$EAR; read line <&3; exit 4`))
	m.receive()
	held, err := m.ear.Accept()
	if err != nil {
		t.Fatal(err)
	}
	m.wait(during.ID, "started")
	running := m.launch(m.input("runs-on", saying("$$")+forever))
	pid := m.receive()
	m.wait(running.ID, "started")
	kept := m.input("kept", saying("up")+"echo once; exit 5")
	kept.Config.AutoDestroy = false
	stopped := m.launch(kept)
	m.receive()
	m.wait(stopped.ID, "stopped")

	kill()
	if _, err := fmt.Fprintln(held, "go"); err != nil {
		t.Fatal(err)
	}
	held.Close()
	exited := filepath.Join(dir, "machines", during.ID, "exit.json")
	await.Until(t, "exit of the program", func() bool { _, err := os.Stat(exited); return err == nil })

	next := after(t, dir)
	if exit := next.exit(ended.ID); exit.ExitCode != 3 {
		t.Errorf("ended before: %+v", exit)
	}
	if exit := next.exit(during.ID); exit.ExitCode != 4 || exit.RequestedStop {
		t.Errorf("ended between: %+v", exit)
	}
	if got := next.list(""); !slices.Equal(got, []string{"kept", "runs-on"}) {
		t.Errorf("alive: %v", got)
	}
	if got := next.get(running.ID); got.State != "started" || strings.Count(events(got), "start/started") != 1 {
		t.Errorf("%s is %s with events %s", got.Name, got.State, events(got))
	}
	number, err := strconv.Atoi(pid)
	if err != nil || syscall.Kill(number, 0) != nil {
		t.Errorf("process %s does not exist: %v", pid, err)
	}
	_, err = next.client.Launch(t.Context(), app, next.input("runs-on", "true"))
	refused(t, err, 409, running.ID)
	if err := next.client.Stop(t.Context(), app, fly.StopMachineInput{ID: running.ID}, ""); err != nil {
		t.Fatal(err)
	}
	if exit := next.exit(running.ID); exit.Signal != 15 || !exit.RequestedStop {
		t.Errorf("running machine after the restart, then stopped: got %+v", exit)
	}
	if text, err := next.server.Logs(stopped.ID); err != nil || string(text) != "once\n" {
		t.Errorf("output from before the crash: got %q, %v", text, err)
	}
	if got := next.get(stopped.ID); got.State != "stopped" || got.GetLatestEventOfType("exit").Request.ExitEvent.ExitCode != 5 {
		t.Errorf("stored records: got %s, %s", got.State, events(got))
	}
}

func TestRequestsSurviveCrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, kill := crash(t, serveOptions{Dir: dir})
	script := stubborn + saying("$$") + "while :; do sleep 600; done"
	stopping := m.launch(m.input("stopping", script))
	m.receive()
	m.wait(stopping.ID, "started")
	if err := m.client.Stop(t.Context(), app, fly.StopMachineInput{
		ID: stopping.ID, Timeout: fly.Duration{Duration: 100 * time.Millisecond},
	}, ""); err != nil {
		t.Fatal(err)
	}
	kill()
	next := after(t, dir)
	if exit := next.exit(stopping.ID); exit.Signal != 9 || !exit.RequestedStop {
		t.Errorf("exit = %+v", exit)
	}
}

func TestCrashOfServerAndSupervisor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, kill := crash(t, serveOptions{Dir: dir})
	made := m.launch(m.input("orphan", "sleep 600 & "+saying("$PPID $$ $!")+"wait"))
	pids := strings.Fields(m.receive())
	m.wait(made.ID, "started")
	kill()
	boss, err := strconv.Atoi(pids[0])
	if err != nil || syscall.Kill(boss, syscall.SIGKILL) != nil {
		t.Fatalf("cannot kill the supervisor %v: %v", pids, err)
	}
	next := after(t, dir)
	if exit := next.exit(made.ID); exit.Signal != 9 || exit.ExitCode != 137 || exit.RequestedStop {
		t.Errorf("exit = %+v", exit)
	}
}

// TestKillsAtAnyMoment kills the server repeatedly while machines are created.
// Each machine runs once and its exit code is stored, or it is stopped before its start.
func TestKillsAtAnyMoment(t *testing.T) {
	t.Parallel()
	dir, runs := t.TempDir(), t.TempDir()
	for round := range 12 {
		m, kill := crash(t, serveOptions{Dir: dir})
		var group sync.WaitGroup
		for n := range 6 {
			name := fmt.Sprintf("m-%d-%d", round, n)
			in := m.input(name, fmt.Sprintf("echo x >>%s; exit %d", filepath.Join(runs, name), 10+n))
			group.Go(func() {
				made, err := m.client.Launch(t.Context(), app, in)
				if err == nil {
					err = os.WriteFile(filepath.Join(runs, name+".id"), []byte(made.ID), 0o600)
					if n == round%6 {
						kill()
					}
				}
				if err != nil {
					t.Log(err) // the server was killed before it answered
				}
			})
		}
		group.Wait()
		kill()
	}
	m := after(t, dir)
	for round := range 12 {
		for n := range 6 {
			name := fmt.Sprintf("m-%d-%d", round, n)
			found, err := m.client.List(t.Context(), app, "include_deleted=true&metadata.run_id="+name)
			if err != nil {
				t.Fatal(err)
			}
			answered, _ := os.ReadFile(filepath.Join(runs, name+".id"))
			if len(found) > 1 || (len(found) == 0 && len(answered) > 0) {
				t.Errorf("%s: %d machines, answered %q", name, len(found), answered)
				continue
			}
			if len(found) == 0 {
				continue
			}
			marks, err := os.ReadFile(filepath.Join(runs, name))
			if errors.Is(err, fs.ErrNotExist) { // killed before the start
				m.wait(found[0].ID, "destroyed")
				if exit := m.exit(found[0].ID); !exit.RequestedStop {
					t.Errorf("%s did not run: got exit %+v, want a requested stop", name, exit)
				}
				continue
			}
			if exit := m.exit(found[0].ID); exit.ExitCode != 10+n {
				t.Errorf("%s: exit = %+v", name, exit)
			}
			if err != nil || string(marks) != "x\n" {
				t.Errorf("%s ran %q, %v; want once", name, marks, err)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "machines", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		if base := filepath.Base(path); base != "machine.json" {
			t.Errorf("leftover: %s", path)
		}
	}
}
