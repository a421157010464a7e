package supervisor_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/output"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(supervisor.Run(os.Stdin, os.Stdout, os.Stderr, clock.System{}))
	}
	goleak.VerifyTestMain(m)
}

// machine is a directory to run programs in, with a port that they report to.
type machine struct {
	t    *testing.T
	dir  string
	port net.Listener
}

func setup(t *testing.T) machine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return machine{t: t, dir: t.TempDir(), port: l}
}

func command(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, "supervise"}
}

func (m machine) launch(start int, script string) *supervisor.Handle {
	m.t.Helper()
	return m.launchSpec(supervisor.Spec{Dir: m.dir, Start: start, Argv: []string{"/bin/bash", "-c", script}, Cwd: m.dir})
}

// launchSpec starts a program with the environment of these tests.
func (m machine) launchSpec(spec supervisor.Spec) *supervisor.Handle {
	m.t.Helper()
	_, port, err := net.SplitHostPort(m.port.Addr().String())
	if err != nil {
		m.t.Fatal(err)
	}
	spec.Env = []string{"PORT=" + port, "PATH=/usr/bin:/bin", "HOME=" + m.dir}
	if spec.Mark != "" {
		spec.Env = append(spec.Env, string(spec.Mark))
	}
	h, err := supervisor.Launch(command(m.t), spec, clock.System{})
	if err != nil {
		m.t.Fatal(err)
	}
	return h
}

// receive returns the line that the program sends to its port.
func (m machine) receive() string {
	m.t.Helper()
	conn, err := m.port.Accept()
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

const ready = `echo $$ >/dev/tcp/127.0.0.1/$PORT; `

func wait(t *testing.T, h *supervisor.Handle) supervisor.Exit {
	t.Helper()
	exit, err := h.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if exit.At.IsZero() || time.Since(exit.At) < 0 {
		t.Errorf("ended at %v", exit.At)
	}
	return exit
}

func TestExit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script       string
		code, signal int
	}{
		"success": {"true", 0, 0},
		"code":    {"exit 7", 7, 0},
		"signal":  {"kill -ABRT $$", 134, 6},
		"killed":  {"kill -KILL $$", 137, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := setup(t)
			h := m.launch(1, test.script)
			exit := wait(t, h)
			if exit.Code != test.code || exit.Signal != test.signal || exit.Problem != "" {
				t.Errorf("exit = %+v, want code %d, signal %d", exit, test.code, test.signal)
			}
			found, err := supervisor.Find(m.dir, 1, clock.System{})
			if err != nil || found == nil {
				t.Fatalf("Find = %v, %v", found, err)
			}
			if again := wait(t, found); again != exit {
				t.Errorf("found %+v, want %+v", again, exit)
			}
		})
	}
}

func TestFailedStartHasExitCode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		program string
		code    int
	}{"missing": {"/no/such/program", 127}, "not executable": {"/etc/hosts", 126}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := supervisor.Launch(command(t), supervisor.Spec{Dir: t.TempDir(), Start: 1, Argv: []string{test.program}}, clock.System{})
			if err != nil {
				t.Fatal(err)
			}
			if exit := wait(t, h); exit.Code != test.code || exit.Problem == "" {
				t.Errorf("exit = %+v, want code %d and a problem", exit, test.code)
			}
		})
	}
}

func TestWrongCommand(t *testing.T) {
	t.Parallel()
	_, err := supervisor.Launch([]string{"/bin/sh", "-c", "echo wrong command >&2; exit 3"},
		supervisor.Spec{Dir: t.TempDir(), Start: 1, Argv: []string{"/bin/true"}}, clock.System{})
	if err == nil || !strings.Contains(err.Error(), "wrong command") {
		t.Errorf("got %v, want the command's output", err)
	}
}

// TestSpecificationOfAnotherVersionIsRefused checks that a supervisor that was replaced while
// the server ran refuses a Spec that it would misread.
func TestSpecificationOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	var problems strings.Builder
	spec := `{"protocol": 999, "dir": "/nonexistent", "start": 1, "argv": ["/bin/true"]}`
	if code := supervisor.Run(strings.NewReader(spec), nil, &problems, clock.System{}); code != 2 || !strings.Contains(problems.String(), "another version") {
		t.Errorf("got %d, %q, want 2 and the reason", code, problems.String())
	}
}

func TestEnvironmentIsNotInherited(t *testing.T) {
	t.Parallel()
	m := setup(t)
	wait(t, m.launch(1, `env | grep -v -e ^_= -e ^SHLVL= -e ^PWD= | sed s/=.*// | sort`))
	got, err := output.Read(m.dir)
	if err != nil || string(got) != "HOME\nPATH\nPORT\n" {
		t.Errorf("got environment %q, %v", got, err)
	}
}

func TestGroupEnds(t *testing.T) {
	t.Parallel()
	m := setup(t)
	h := m.launch(1, `(trap "" TERM; `+ready+` sleep 600) & wait`)
	child := m.receive()
	if err := h.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, h); exit.Code != 143 || exit.Signal != 15 {
		t.Errorf("exit = %+v, want SIGTERM", exit)
	}
	gone(t, child)
	if err := h.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("a signal after the end: %v", err)
	}
}

func TestStartHappensOnce(t *testing.T) {
	t.Parallel()
	m := setup(t)
	if h, err := supervisor.Find(m.dir, 1, clock.System{}); h != nil || err != nil {
		t.Fatalf("Find before the start = %v, %v", h, err)
	}
	first := m.launch(1, ready+`read line < <(sleep 600)`)
	m.receive()
	second := m.launch(1, "exit 5")
	if first.StartedAt().IsZero() || second.StartedAt() != first.StartedAt() {
		t.Errorf("started at %v and %v", first.StartedAt(), second.StartedAt())
	}
	if err := second.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if a, b := wait(t, first), wait(t, second); a != b || a.Signal != 9 {
		t.Errorf("exits %+v and %+v, want one by signal 9", a, b)
	}
	if late := wait(t, m.launch(1, "exit 5")); late.Signal != 9 {
		t.Errorf("the start after the end ran again: %+v", late)
	}
	if next := wait(t, m.launch(2, "exit 6")); next.Code != 6 {
		t.Errorf("the next start: %+v", next)
	}
}

func TestKilledSupervisorLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"child", "found"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			m := setup(t)
			h := m.launch(1, `sleep 600 & echo $PPID $$ $! >/dev/tcp/127.0.0.1/$PORT; sleep 600`)
			pids := strings.Fields(m.receive())
			boss, err := strconv.Atoi(pids[0])
			if err != nil {
				t.Fatal(err)
			}
			if who == "found" {
				found, err := supervisor.Find(m.dir, 1, clock.System{})
				if err != nil || found == nil {
					t.Fatalf("Find = %v, %v", found, err)
				}
				defer h.Wait()
				h = found
			}
			if err := syscall.Kill(boss, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if exit := wait(t, h); exit.Signal != 9 || exit.Code != 137 || exit.Problem == "" {
				t.Errorf("exit = %+v, want signal 9", exit)
			}
			for _, pid := range pids {
				gone(t, pid)
			}
		})
	}
}

// gone fails if the process is alive. A zombie counts as gone.
func gone(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for range 12_000 {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if errors.Is(syscall.Kill(number, 0), syscall.ESRCH) || (err == nil && strings.Contains(string(stat), ") Z ")) {
			return
		}
		<-look.C
	}
	t.Errorf("process %s is alive", pid)
}
