//go:build unix

package wrap

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/sortie-dev/sortie/shared/worker/proctree"
)

// Command is the name of the command with which a program that contains this package
// calls Main.
const Command = "machine-exec"

// Main runs sortie-exec with arguments and an environment, and returns its exit code.
// It handles the signals of the process and waits for every child process, so the
// process does nothing else.
func Main(args, environ []string) int {
	return Run(args, environ, Process{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: Signals()})
}

// Process is what the wrapper uses of the process that it runs in.
type Process struct {
	// Stdin is the standard input of a program without one of its own.
	Stdin *os.File
	// Stdout and Stderr get the program's output and the wrapper's messages.
	Stdout, Stderr *os.File
	// Signals are those of Signals.
	Signals <-chan os.Signal
	// Group is the cgroup of the program; nil is without one. Run removes it.
	Group *proctree.Group
	// Orphaned is closed when the platform that keeps the output and the exit code of this
	// process is gone; nil is never. From then on Run returns when the program has ended: the
	// control plane finds both. An output file has no other way than the control plane.
	Orphaned <-chan struct{}
}

// Signals returns the signals of this process that the wrapper handles.
func Signals() <-chan os.Signal {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	// A closed standard output must not end the wrapper. The signal is not ignored,
	// because the program would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return signals
}

// Run is Main in a process that has another purpose, too. Its current folder is that of
// the program.
func Run(args, environ []string, process Process) int {
	code := process.run(args, environ)
	if err := process.Group.Remove(); err != nil { // of a program that did not start
		process.fail("%v", err)
	}
	return code
}
