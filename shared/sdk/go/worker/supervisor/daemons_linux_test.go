package supervisor_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/daemons"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/proctree"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

// mark returns a mark of the test. A separator in it prevents a cgroup of that name.
func mark(t *testing.T, separator string) proctree.Mark {
	t.Helper()
	return proctree.Mark("MARK_OF_THE_TEST=" + strings.ReplaceAll(t.Name(), "/", separator) + strconv.Itoa(os.Getpid()))
}

// launchDaemon starts a daemon under a supervisor. The script writes the processes of the
// supervisor and of the program to the port before it runs the commands in then.
func (m machine) launchDaemon(d daemons.Daemon, mark proctree.Mark, then string) (h *supervisor.Handle, boss, program int) {
	m.t.Helper()
	return m.launchUnder(nil, d, mark, then)
}

// launchUnder is like launchDaemon, with a wrapper.
func (m machine) launchUnder(w *supervisor.Wrapper, d daemons.Daemon, mark proctree.Mark, then string) (h *supervisor.Handle, boss, program int) {
	m.t.Helper()
	h = m.launchSpec(supervisor.Spec{
		Dir: m.dir, Start: 1, Cwd: m.dir, Mark: mark, Wrapper: w,
		Argv: []string{"/bin/bash", "-c", d.Script(`echo $PPID $$ >/dev/tcp/127.0.0.1/$PORT; ` + then)},
	})
	pids := strings.Fields(m.receive())
	boss, err := strconv.Atoi(pids[0])
	if err == nil {
		program, err = strconv.Atoi(pids[1])
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return h, boss, program
}

const rest = "sleep 600 & wait"

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// TestNothingOutlivesAStart runs the daemons without a separate cgroup and, if this host
// permits it, with one.
func TestNothingOutlivesAStart(t *testing.T) {
	t.Parallel()
	for _, name := range daemons.Names() {
		t.Run("cgroup/"+name, func(t *testing.T) {
			t.Parallel()
			group, err := proctree.NewGroup(mark(t, "."))
			if err != nil {
				t.Skipf("needs a writable cgroup v2 and a kernel from 5.14: %v", err)
			}
			if err := os.Remove(group.Path()); err != nil {
				t.Fatal(err)
			}
			testDaemon(t, name, ".", true)
		})
		t.Run("tree/"+name, func(t *testing.T) {
			t.Parallel()
			testDaemon(t, name, "/", name != "no environment")
		})
	}
}

// testDaemon starts a daemon and ends it in all ways. traceable is false if a killed supervisor
// leaves no trace of it.
func testDaemon(t *testing.T, name, separator string, traceable bool) {
	t.Helper()
	t.Run("success", func(t *testing.T) {
		t.Parallel()
		m, d := setup(t), daemons.New(t, name)
		h, _, _ := m.launchDaemon(d, mark(t, separator), "exit 0")
		if exit := wait(t, h); exit.Code != 0 || exit.Problem != "" {
			t.Errorf("got exit %+v, want 0", exit)
		}
		d.WantNone(t)
	})
	t.Run("program killed", func(t *testing.T) {
		t.Parallel()
		m, d := setup(t), daemons.New(t, name)
		h, _, program := m.launchDaemon(d, mark(t, separator), rest)
		kill(t, program)
		if exit := wait(t, h); exit.Signal != 9 || exit.Problem != "" {
			t.Errorf("got exit %+v, want signal 9", exit)
		}
		d.WantNone(t)
	})
	wrapper := &supervisor.Wrapper{Flags: []string{"--standalone"}}
	t.Run("wrapped", func(t *testing.T) {
		t.Parallel()
		m, d := setup(t), daemons.New(t, name)
		h, _, _ := m.launchUnder(wrapper, d, mark(t, separator), "exit 7")
		if exit := wait(t, h); exit.Code != 7 || exit.Problem != "" {
			t.Errorf("got exit %+v, want 7", exit)
		}
		d.WantNone(t)
	})
	t.Run("wrapped and killed by the server", func(t *testing.T) {
		t.Parallel()
		m, d := setup(t), daemons.New(t, name)
		h, boss, _ := m.launchUnder(wrapper, d, mark(t, separator), rest)
		if err := h.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		if exit := wait(t, h); exit.Signal != 9 || exit.Problem != "" {
			t.Errorf("got exit %+v, want signal 9", exit)
		}
		gone(t, strconv.Itoa(boss))
		d.WantNone(t)
	})
	if !traceable {
		return
	}
	t.Run("wrapper killed", func(t *testing.T) {
		t.Parallel()
		m, d := setup(t), daemons.New(t, name)
		h, boss, _ := m.launchUnder(wrapper, d, mark(t, separator), rest)
		kill(t, boss)
		if exit := wait(t, h); exit.Signal != 9 {
			t.Errorf("got exit %+v, want signal 9", exit)
		}
		d.WantNone(t)
	})
	t.Run("supervisor killed", func(t *testing.T) {
		t.Parallel()
		m, d := setup(t), daemons.New(t, name)
		h, boss, _ := m.launchDaemon(d, mark(t, separator), rest)
		kill(t, boss)
		if exit := wait(t, h); exit.Signal != 9 {
			t.Errorf("got exit %+v, want signal 9", exit)
		}
		d.WantNone(t)
	})
	t.Run("found after a kill", func(t *testing.T) {
		t.Parallel()
		m, d := setup(t), daemons.New(t, name)
		h, boss, _ := m.launchDaemon(d, mark(t, separator), rest)
		found, err := supervisor.Find(m.dir, 1, clock.System{})
		if err != nil {
			t.Fatal(err)
		}
		kill(t, boss)
		wait(t, found)
		d.WantNone(t)
		wait(t, h)
	})
}
