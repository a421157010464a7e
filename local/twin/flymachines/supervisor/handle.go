package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines/durable"
	"github.com/sortie-dev/sortie/shared/clock"
)

// lookAgain is the pause between two looks at a supervisor that is not this
// process's child, and so cannot be waited for.
const lookAgain = 100 * time.Millisecond

// Handle is one start of a program, as the server sees it.
type Handle struct {
	dir   string
	start int
	child *exec.Cmd // nil for one that was found
	clock clock.Clock
}

// Launch starts the program under a supervisor, which command runs (the path
// of an executable and the arguments that make it call Run). It returns when
// the program runs, or could not be started and has its exit recorded. A start
// that happened before, or that another supervisor has in hand, is taken up
// instead of repeated.
func Launch(command []string, spec Spec, clock clock.Clock) (*Handle, error) {
	words, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("cannot tell the supervisor what to run: %w", err)
	}
	var problems bytes.Buffer
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"GOMAXPROCS=1"} // it only waits
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin = bytes.NewReader(words)
	problemsFile := filepath.Join(spec.Dir, "supervisor.err")
	stderr, err := os.Create(problemsFile)
	if err != nil {
		return nil, fmt.Errorf("cannot make the supervisor's log: %w", err)
	}
	defer stderr.Close() // the child has its own
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe for the supervisor: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the supervisor: %w", err)
	}
	said, err := io.ReadAll(io.LimitReader(stdout, 64))
	h := &Handle{dir: spec.Dir, start: spec.Start, child: cmd, clock: clock}
	switch word := strings.TrimSpace(string(said)); {
	case err == nil && word == saysStarted:
		return h, nil
	case err == nil && word == saysTaken:
		return &Handle{dir: spec.Dir, start: spec.Start, clock: clock}, cmd.Wait()
	}
	if found, err := readStart(spec.Dir); err == nil && found.Start == spec.Start {
		return h, nil // it was killed after the start; Wait finds out
	}
	ended := errors.Join(err, cmd.Wait())
	if text, err := os.ReadFile(problemsFile); err == nil {
		problems.Write(text[:min(len(text), 1024)])
	}
	return nil, fmt.Errorf("the supervisor did not start the program: %w: %s", ended, strings.TrimSpace(problems.String()))
}

// Find gives the start again that an earlier process has made; nil where it
// never happened, so that it is safe to Launch.
func Find(dir string, number int, clock clock.Clock) (*Handle, error) {
	h := &Handle{dir: dir, start: number, clock: clock}
	for {
		held, err := locked(dir)
		if err != nil {
			return nil, err
		}
		record, err := readStart(dir)
		if err != nil {
			return nil, err
		}
		switch happened := record.Start >= number; {
		case happened && (record.Program != nil || !held):
			return h, nil
		case !happened && !held:
			return nil, nil
		}
		h.pause() // a supervisor is about to start it
	}
}

// StartedAt is when the program was started; the zero time where that is not
// recorded.
func (h *Handle) StartedAt() time.Time {
	record, err := readStart(h.dir)
	if err != nil || record.Start != h.start {
		return time.Time{}
	}
	return record.At
}

// Signal sends a signal to the program's group; nil where the program is gone.
func (h *Handle) Signal(s syscall.Signal) error {
	record, err := readStart(h.dir)
	if err != nil {
		return err
	}
	if record.Start != h.start || record.Program == nil {
		return nil
	}
	_, err = signalGroup(record, s)
	return err
}

// Wait returns when the supervisor is gone and tells how the program ended.
// Where that was not recorded, because the supervisor was killed, it kills the
// program, and records and returns an end by SIGKILL.
func (h *Handle) Wait() (Exit, error) {
	if h.child != nil {
		// The record tells more than the supervisor's own exit code.
		_ = h.child.Wait()
	} else if err := h.waitUnlocked(); err != nil {
		return Exit{}, err
	}
	exit, found, err := readExit(h.dir, h.start)
	if found || err != nil {
		return exit, err
	}
	if err := h.killRest(); err != nil {
		return Exit{}, err
	}
	exit = Exit{
		Start: h.start, Code: 128 + int(syscall.SIGKILL), Signal: int(syscall.SIGKILL),
		Problem: "the supervisor was killed", At: h.clock.Now(),
	}
	return exit, durable.Write(filepath.Join(h.dir, exitFile), exit)
}

func (h *Handle) waitUnlocked() error {
	for {
		held, err := locked(h.dir)
		if err != nil || !held {
			return err
		}
		h.pause()
	}
}

func (h *Handle) pause() {
	again, stop := h.clock.NewTimer(lookAgain)
	defer stop()
	<-again
}

// killRest kills what a supervisor that was killed has left, and returns when
// nothing of it is alive.
func (h *Handle) killRest() error {
	record, err := readStart(h.dir)
	if err != nil {
		return err
	}
	if record.Start != h.start || record.Program == nil {
		return nil
	}
	for {
		left, err := signalGroup(record, syscall.SIGKILL)
		if err != nil || left == 0 {
			return err
		}
		h.pause()
	}
}

// signalGroup signals the program's group, if it is still the one that was
// started, and tells how many processes were meant. A group whose leader is
// gone keeps its number while it has members, and they their session.
func signalGroup(record start, s syscall.Signal) (int, error) {
	now, err := identify(record.Program.PID)
	if err == nil && *now == *record.Program {
		return 1, ignoreGone(syscall.Kill(-record.Program.PID, s))
	}
	if err != nil && !errors.Is(err, errNoProcess) {
		return 0, err
	}
	if err == nil {
		return 0, nil // the number is somebody else's now
	}
	pids, err := members(record.Program.PID, record.Session)
	for _, pid := range pids {
		err = errors.Join(err, ignoreGone(syscall.Kill(pid, s)))
	}
	return len(pids), err
}

func ignoreGone(err error) error {
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) {
		return nil // macOS says EPERM of a group of zombies
	}
	return err
}

func locked(dir string) (bool, error) { return durable.Claimed(filepath.Join(dir, lockFile)) }
