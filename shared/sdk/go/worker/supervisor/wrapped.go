package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/proctree"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/wrap"
)

// superviseWrapped is the rest of supervise for a program that the supervisor wraps. The
// machine runs when the wrapper runs. Signals for the machine are sent to the wrapper.
func superviseWrapped(spec Spec, group *proctree.Group, stdout io.WriteCloser, clock clock.Clock) error {
	signals := wrap.Signals()
	self, err := identify(os.Getpid())
	if err == nil {
		err = durable.Place(filepath.Join(spec.Dir, startFile), start{
			Start: spec.Start, Program: self, Session: self.PID, At: clock.Now(), Mark: spec.Mark, Group: group.Path(),
		})
	}
	if err == nil {
		err = say(stdout, saysStarted)
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return errors.Join(err, group.Remove())
	}
	exit, err := runWrapped(spec, wrap.Process{Signals: signals, Group: group, Orphaned: orphaned()}, clock)
	if err != nil {
		return err
	}
	return finish(spec, exit)
}

// orphaned returns a channel that is closed when the server ends. The next server reads how the
// program ended.
func orphaned() <-chan struct{} {
	over := make(chan struct{})
	server := os.NewFile(lifelineFile, "lifeline")
	go func() {
		_, _ = server.Read(make([]byte, 1))
		close(over)
	}()
	return over
}

// runWrapped runs the wrapper and stores its output as that of the machine.
func runWrapped(spec Spec, process wrap.Process, clock clock.Clock) (Exit, error) {
	input, err := os.Open(os.DevNull)
	if err != nil {
		return Exit{}, fmt.Errorf("cannot open the input: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return Exit{}, fmt.Errorf("cannot create a pipe for the output: %w", err)
	}
	out := store(spec, read)
	process.Stdin, process.Stdout, process.Stderr = input, write, write
	exit := Exit{Start: spec.Start, Code: wrap.Run(slices.Concat(spec.Wrapper.Flags, []string{"--"}, spec.Argv), spec.Env, process)}
	exit.At = clock.Now()
	if err := errors.Join(write.Close(), out.drain(clock)); err != nil {
		exit.Problem = err.Error()
	}
	return exit, nil
}
