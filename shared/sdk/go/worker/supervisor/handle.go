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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/proctree"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
)

// lookAgain is the interval at which Wait polls a supervisor that is not a
// child of this process.
const lookAgain = 100 * time.Millisecond

// Handle is one start of a program.
type Handle struct {
	dir   string
	start int
	child *exec.Cmd // nil for a start that was found
	clock clock.Clock
	// killed is true after Signal has killed a supervisor that is a wrapper.
	killed *atomic.Bool
}

func newHandle(dir string, start int, child *exec.Cmd, clock clock.Clock) *Handle {
	return &Handle{dir, start, child, clock, new(atomic.Bool)}
}

// Launch starts the program under a supervisor. command is the path of an executable and the
// arguments with which it calls Run. Launch returns when the program runs, or when its failed
// start is recorded as an exit. If the start happened before, or another supervisor is handling
// it, Launch adopts it.
func Launch(command []string, spec Spec, clock clock.Clock) (*Handle, error) {
	spec.Parent, spec.Protocol = os.Getpid(), protocol
	words, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the supervisor's specification: %w", err)
	}
	var problems bytes.Buffer
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = "/"
	cmd.Env = startEnvironment()
	if w := spec.Wrapper; w != nil {
		cmd.Dir, cmd.Env = spec.Cwd, append(cmd.Env, w.Env...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin = bytes.NewReader(words)
	problemsFile := filepath.Join(spec.Dir, "supervisor.err")
	stderr, err := os.OpenFile(problemsFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot create the supervisor's log: %w", err)
	}
	defer stderr.Close() // the child has its own descriptor
	cmd.Stderr = stderr
	lifeline, err := lifeline()
	if err != nil {
		return nil, fmt.Errorf("cannot create a pipe for supervisors: %w", err)
	}
	cmd.ExtraFiles = []*os.File{lifeline}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot create a pipe for the supervisor: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the supervisor: %w", err)
	}
	said, err := io.ReadAll(io.LimitReader(stdout, 64))
	h := newHandle(spec.Dir, spec.Start, cmd, clock)
	switch word := strings.TrimSpace(string(said)); {
	case err == nil && word == saysStarted:
		return h, nil
	case err == nil && word == saysTaken:
		return newHandle(spec.Dir, spec.Start, nil, clock), cmd.Wait()
	}
	if found, err := readStart(spec.Dir); err == nil && found.Start == spec.Start {
		return h, nil // the supervisor was killed after the start; Wait detects it
	}
	ended := errors.Join(err, cmd.Wait())
	if text, err := os.ReadFile(problemsFile); err == nil {
		problems.Write(text[:min(len(text), 1024)])
	}
	return nil, fmt.Errorf("the supervisor did not start the program: %w: %s", ended, strings.TrimSpace(problems.String()))
}

// lifeline returns one end of a pipe, which all supervisors of this process inherit. The other
// end closes with this process.
var lifeline = sync.OnceValues(func() (*os.File, error) {
	read, write, err := os.Pipe()
	held.Store(write)
	return read, err
})

// held keeps the other end of lifeline from being closed by the garbage collector.
var held atomic.Pointer[os.File]

// Find returns the start that an earlier process made. It returns nil if the start has not
// happened and will not happen unless Launch is called. The earlier process must have ended.
func Find(dir string, number int, clock clock.Clock) (*Handle, error) {
	h := newHandle(dir, number, nil, clock)
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

// StartedAt returns the time of the start, or the zero time if it is not recorded.
func (h *Handle) StartedAt() time.Time {
	record, err := readStart(h.dir)
	if err != nil || record.Start != h.start {
		return time.Time{}
	}
	return record.At
}

// Signal sends a signal to the program's group. It returns nil if the program is gone.
func (h *Handle) Signal(s syscall.Signal) error {
	record, err := readStart(h.dir)
	if err != nil {
		return err
	}
	if record.Start != h.start || record.Program == nil {
		return nil
	}
	if s == syscall.SIGKILL && record.wrapped() {
		return h.killWrapper(record)
	}
	_, err = signalGroup(record, s)
	return err
}

// killWrapper kills a supervisor that is a wrapper, with all its descendants. No other process
// would kill what the program has started.
func (h *Handle) killWrapper(record start) error {
	now, err := identify(record.Program.PID)
	if errors.Is(err, errNoProcess) || err == nil && *now != *record.Program {
		return nil
	}
	if err != nil {
		return err
	}
	h.killed.Store(true)
	if err := proctree.KillTree(record.Program.PID); err != nil {
		return fmt.Errorf("cannot kill the supervisor: %w", err)
	}
	return nil
}

// Wait returns how the program ended when the supervisor is gone. If the supervisor was killed
// before it recorded an end, Wait kills the program, and records and returns an end by SIGKILL.
func (h *Handle) Wait() (Exit, error) {
	if h.child != nil {
		// The record is more precise than the supervisor's exit code.
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
	if h.killed.Load() {
		exit.Problem = ""
	}
	return exit, durable.Place(filepath.Join(h.dir, exitFile), exit)
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

// killRest kills the remaining processes of a killed supervisor, and returns when none is
// alive.
func (h *Handle) killRest() error {
	record, err := readStart(h.dir)
	if err != nil {
		return err
	}
	if record.Start != h.start {
		return nil
	}
	for {
		left, err := proctree.KillMarked(record.Mark, record.Group)
		if record.Program != nil && err == nil {
			var members int
			members, err = signalGroup(record, syscall.SIGKILL)
			left += members
		}
		if err != nil || left == 0 {
			return err
		}
		h.pause()
	}
}

// signalGroup signals the program's group if it is still the one that was
// started, and returns the number of signalled processes. A group whose leader
// is gone keeps its number and its session while it has members.
func signalGroup(record start, s syscall.Signal) (int, error) {
	now, err := identify(record.Program.PID)
	if err == nil && *now == *record.Program {
		return 1, ignoreGone(syscall.Kill(-record.Program.PID, s))
	}
	if err != nil && !errors.Is(err, errNoProcess) {
		return 0, err
	}
	if err == nil {
		return 0, nil // the number belongs to another process now
	}
	pids, err := members(record.Program.PID, record.Session)
	for _, pid := range pids {
		err = errors.Join(err, ignoreGone(syscall.Kill(pid, s)))
	}
	return len(pids), err
}

func ignoreGone(err error) error {
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) {
		return nil // macOS returns EPERM for a group of zombies
	}
	return err
}

func locked(dir string) (bool, error) { return durable.Claimed(filepath.Join(dir, lockFile)) }
