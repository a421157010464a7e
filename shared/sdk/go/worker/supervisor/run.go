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
	"runtime/debug"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/proctree"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/output"
)

// The supervisor prints one of these lines on its standard output.
const (
	saysStarted = "started" // or its start failed: the exit record is written
	saysTaken   = "taken"   // another supervisor handles this start
)

// drainTime is how long the supervisor waits for output after the program's processes were killed.
// A process that holds the pipe open after that has survived SIGKILL.
const drainTime = 2 * time.Second

// Command is the argument with which a program that contains this package calls Main.
const Command = "machine-supervisor"

// Main is the main function of the process that Launch starts, and returns the exit code. It
// accepts no arguments, or VersionFlag. Call it from the main goroutine, before other
// initialisation.
func Main(args []string) int {
	switch {
	case len(args) == 0:
		return Run(os.Stdin, os.Stdout, os.Stderr, clock.System{})
	case len(args) == 1 && args[0] == VersionFlag:
		fmt.Fprintln(os.Stdout, Version())
		return 0
	}
	fmt.Fprintln(os.Stderr, "this command takes no arguments; the machines server starts it")
	return 2
}

// startEnvironment returns the environment of every supervisor. One processor suffices, because
// the supervisor only waits. Garbage collection is off until Run: in a large program it would
// take as long as the rest of the start.
func startEnvironment() []string { return []string{"GOMAXPROCS=1", "GOGC=off"} }

// lifelineFile is the descriptor of lifeline in a supervisor.
const lifelineFile = 3

// gcPercent is the garbage collection percentage that Run sets.
const gcPercent = 100

// Run is the main function of a supervisor. It reads a Spec from stdin, runs the program to its
// end and records both. Call it from the main goroutine. It returns the exit code: 0 if the end
// is recorded or another supervisor handles this start, 1 if the end could not be recorded, 2
// for an invalid Spec. Errors are written to stderr.
func Run(stdin io.Reader, stdout io.WriteCloser, stderr io.Writer, clock clock.Clock) int {
	debug.SetGCPercent(gcPercent)
	// The kernel ties the program's life to the thread that started it.
	runtime.LockOSThread()
	syscall.CloseOnExec(lifelineFile)
	// A handler, unlike SIG_IGN, is not inherited by the program.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE)
	defer signal.Stop(signals)

	var spec Spec
	if err := json.NewDecoder(stdin).Decode(&spec); err != nil {
		fmt.Fprintln(stderr, "cannot read what to run:", err)
		return 2
	}
	if spec.Protocol != protocol {
		fmt.Fprintf(stderr, "this program is of another version than the server: got protocol %d, want %d; restart the server\n", spec.Protocol, protocol)
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

// errTaken means that another supervisor handles the start.
var errTaken = errors.New("another supervisor handles the start")

// claim acquires the lock of the machine for this start. It returns errTaken if another
// supervisor acquired it first.
func claim(spec Spec) (*durable.Lock, error) {
	lock, err := durable.TryClaim(filepath.Join(spec.Dir, lockFile))
	if errors.Is(err, durable.ErrLocked) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	before, err := readStart(spec.Dir)
	if err != nil {
		return nil, err
	}
	if before.Start >= spec.Start {
		return nil, errTaken
	}
	// A server that is opened after the end of this one finds the start or the lock. If it
	// finds neither, the program does not start any more.
	if os.Getppid() != spec.Parent {
		return nil, errors.Join(errors.New("the server has ended before the program was started"), os.Remove(filepath.Join(spec.Dir, lockFile)))
	}
	return lock, nil
}

func supervise(spec Spec, stdout io.WriteCloser, signals <-chan os.Signal, clock clock.Clock) error {
	lock, err := claim(spec)
	if errors.Is(err, errTaken) {
		return say(stdout, saysTaken)
	}
	if err != nil {
		return err
	}
	defer lock.Unlock() //nolint:errcheck // the process ends with it
	group, err := proctree.NewGroup(spec.Mark)
	if err != nil {
		group = nil // the host permits none
	}
	if spec.Wrapper != nil {
		return superviseWrapped(spec, group, stdout, clock)
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
		return errors.Join(group.Remove(), finish(spec, exit), say(stdout, saysStarted))
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
	exit := program.wait(clock)
	exit.Start = spec.Start
	return finish(spec, exit)
}

// finish records the end. It need not survive a loss of power, which also ends the program. The
// next server then records the end.
func finish(spec Spec, exit Exit) error {
	return durable.Place(filepath.Join(spec.Dir, exitFile), exit)
}

func say(stdout io.WriteCloser, word string) error {
	_, err := fmt.Fprintln(stdout, word)
	return errors.Join(err, stdout.Close())
}

// running is a process tree with the goroutine that copies its output.
type running struct {
	*proctree.Tree
	stored
}

func begin(spec Spec, group *proctree.Group) (*running, error) {
	input, err := os.Open(os.DevNull)
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
	return &running{Tree: tree, stored: store(spec, read)}, nil
}

// stored is output that is being copied to files.
type stored struct {
	from   *proctree.Output
	copied chan error
}

// store stores the data of a pipe until its end.
func store(spec Spec, pipe *os.File) stored {
	from := proctree.NewOutput(pipe)
	s := stored{from, make(chan error, 1)}
	go func() {
		w := output.NewWriter(spec.Dir, spec.OutputLimit)
		_, err := io.Copy(w, from)
		if err != nil && !errors.Is(err, os.ErrClosed) {
			// If the output cannot be stored, it is discarded: the program must
			// not block.
			_, drained := io.Copy(io.Discard, from)
			err = errors.Join(err, drained)
		}
		s.copied <- errors.Join(err, w.Close())
	}()
	return s
}

// drain stores the rest of the output. It waits for more for drainTime at most.
func (s stored) drain(clock clock.Clock) error {
	late, stop := clock.NewTimer(drainTime)
	defer stop()
	select {
	case err := <-s.copied:
		return err
	case <-late:
		return errors.Join(s.from.Stop(), <-s.copied)
	}
}

// passOn forwards a signal to the program. A user who stops the supervisor by hand wants to
// stop the machine.
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
func (r *running) wait(clock clock.Clock) Exit {
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
	if err = r.drain(clock); err != nil && exit.Problem == "" {
		exit.Problem = err.Error()
	}
	return exit
}
