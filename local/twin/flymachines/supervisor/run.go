package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines/durable"
	"github.com/sortie-dev/sortie/local/twin/flymachines/output"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/worker/proctree"
)

// The supervisor prints one of these lines on its standard output.
const (
	saysStarted = "started" // or its start failed: the exit record is written
	saysTaken   = "taken"   // another supervisor handles this start
)

// drainTime is how long output is read after the program's processes were killed. A
// process that holds the pipe open after that withstands SIGKILL.
const drainTime = 2 * time.Second

// Run is the main function of a supervisor: it reads a Spec from stdin, runs
// the program to its end and records both. Call it from the main goroutine. It
// returns the exit code: 0 if the end is recorded or another supervisor handles
// this start, 1 if the end could not be recorded, 2 for an invalid Spec. Errors
// go to stderr.
func Run(stdin io.Reader, stdout io.WriteCloser, stderr io.Writer, clock clock.Clock) int {
	// The kernel ties the program's life to the thread that started it.
	runtime.LockOSThread()
	// A handler, unlike SIG_IGN, is not inherited by the program.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE)
	defer signal.Stop(signals)

	var spec Spec
	if err := json.NewDecoder(stdin).Decode(&spec); err != nil {
		fmt.Fprintln(stderr, "cannot read what to run:", err)
		return 2
	}
	if spec.Dir == "" || spec.Start < 1 || len(spec.Argv) == 0 {
		fmt.Fprintln(stderr, "invalid specification: want a directory, a start number and a program")
		return 2
	}
	if err := supervise(spec, stdout, signals, clock); err != nil {
		fmt.Fprintln(stderr, "cannot supervise:", err)
		return 1
	}
	return 0
}

func supervise(spec Spec, stdout io.WriteCloser, signals <-chan os.Signal, clock clock.Clock) error {
	lock, err := durable.TryClaim(filepath.Join(spec.Dir, lockFile))
	if errors.Is(err, durable.ErrLocked) {
		return say(stdout, saysTaken)
	}
	if err != nil {
		return err
	}
	defer lock.Unlock() //nolint:errcheck // the process ends with it
	before, err := readStart(spec.Dir)
	if err != nil {
		return err
	}
	if before.Start >= spec.Start {
		return say(stdout, saysTaken)
	}
	// A server that is opened after the end of this one finds the start or the lock,
	// or can rely on it that the program does not start any more.
	if os.Getppid() != spec.Parent {
		return errors.Join(errors.New("the server has ended before the program was started"), os.Remove(filepath.Join(spec.Dir, lockFile)))
	}
	group, err := proctree.NewGroup(spec.Mark)
	if err != nil {
		group = nil // the host permits none
	}
	record := start{Start: spec.Start, Session: os.Getpid(), At: clock.Now(), Mark: spec.Mark, Group: group.Path()}
	if err := durable.Place(filepath.Join(spec.Dir, startFile), record); err != nil {
		return err
	}
	program, err := begin(spec, group)
	if err != nil {
		exit := Exit{Start: spec.Start, Code: 126, Problem: err.Error(), At: clock.Now()}
		if errors.Is(err, fs.ErrNotExist) {
			exit.Code = 127
		}
		return errors.Join(finish(spec, exit), say(stdout, saysStarted))
	}
	if record.Program, err = identify(program.PID); err == nil {
		record.At = clock.Now()
		err = durable.Place(filepath.Join(spec.Dir, startFile), record)
	}
	if err != nil && !errors.Is(err, errNoProcess) {
		return errors.Join(err, program.Kill())
	}
	if err := say(stdout, saysStarted); err != nil && !errors.Is(err, syscall.EPIPE) {
		return errors.Join(err, program.Kill())
	}
	go program.passOn(signals)
	exit, err := program.wait(clock)
	if err != nil {
		return err
	}
	exit.Start = spec.Start
	return finish(spec, exit)
}

func finish(spec Spec, exit Exit) error {
	return durable.Write(filepath.Join(spec.Dir, exitFile), exit)
}

func say(stdout io.WriteCloser, word string) error {
	_, err := fmt.Fprintln(stdout, word)
	return errors.Join(err, stdout.Close())
}

// running is a process tree with the goroutine that copies its output.
type running struct {
	*proctree.Tree
	output *os.File
	copied chan error
}

func begin(spec Spec, group *proctree.Group) (*running, error) {
	input, err := openInput(spec.Input)
	if err != nil {
		return nil, fmt.Errorf("cannot open the input: %w", err)
	}
	defer input.Close() //nolint:errcheck // the program has its own descriptor
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot create a pipe for the output: %w", err)
	}
	tree, err := proctree.Start(spec.Argv[0], spec.Argv, os.ProcAttr{
		Dir: spec.Cwd, Env: spec.Env, Files: []*os.File{input, write, write},
	}, group)
	if closed := write.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	r := &running{Tree: tree, output: read, copied: make(chan error, 1)}
	go func() {
		w := output.NewWriter(spec.Dir, spec.OutputLimit)
		_, err := io.Copy(w, read)
		if err != nil && !errors.Is(err, os.ErrClosed) {
			// If the output cannot be stored, it is discarded: the program must
			// not block.
			_, drained := io.Copy(io.Discard, read)
			err = errors.Join(err, drained)
		}
		r.copied <- errors.Join(err, w.Close())
	}()
	return r, nil
}

// openInput returns a file whose content is the text.
func openInput(text []byte) (*os.File, error) {
	if len(text) == 0 {
		return os.Open(os.DevNull)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() { _, _ = write.Write(text); _ = write.Close() }() // EPIPE ends it if the program does not read
	return read, nil
}

// passOn forwards a signal to the program: a user who stops the supervisor by
// hand wants to stop the machine.
func (r *running) passOn(signals <-chan os.Signal) {
	for s := range signals {
		if meant, ok := s.(syscall.Signal); ok && (meant == syscall.SIGTERM || meant == syscall.SIGINT) {
			// The program may have ended already.
			_ = r.Signal(meant)
		}
	}
}

// wait waits for the program, kills everything that it has started, and waits for the
// rest of the output.
func (r *running) wait(clock clock.Clock) (Exit, error) {
	status := <-r.Ended()
	exit := Exit{Code: status.ExitStatus(), At: clock.Now()}
	if status.Signaled() {
		exit.Signal = int(status.Signal())
		exit.Code = 128 + exit.Signal
	}
	err := r.Kill()
	if err != nil {
		exit.Problem = err.Error()
	}
	late, stop := clock.NewTimer(drainTime)
	defer stop()
	select {
	case err = <-r.copied:
	case <-late:
		err = r.output.Close()
	}
	if err != nil && exit.Problem == "" {
		exit.Problem = err.Error()
	}
	return exit, nil
}
