//go:build unix

package wrap

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker/proctree"
)

// Command is the name of the command with which a program that contains this package
// calls Main.
const Command = "machine-exec"

// Main runs sortie-exec with arguments and an environment, and returns its exit code. It
// handles the signals of the process and waits for every child process, so the process must not
// do anything else.
func Main(args, environ []string) int {
	return Run(args, environ, Process{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: Signals()})
}

// Process contains the parts of its process that the wrapper uses.
type Process struct {
	// Stdin is the standard input of a program without one of its own.
	Stdin *os.File
	// Stdout and Stderr receive the program's output and the wrapper's messages.
	Stdout, Stderr *os.File
	// Signals is the result of the function Signals.
	Signals <-chan os.Signal
	// Group is the cgroup of the program, or nil. Run removes it.
	Group *proctree.Group
	// Orphaned is closed when the platform that stores the output and the exit code of this
	// process is gone; nil means never. From then on Run returns when the program has ended,
	// because the control plane finds both. If the program has an output file, Run still
	// delivers it: the control plane has no other way to get it.
	Orphaned <-chan struct{}
}

// Signals returns the signals of this process that the wrapper handles.
func Signals() <-chan os.Signal {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	// A closed standard output must not end the wrapper. The signal is handled and not ignored,
	// because the program would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return signals
}

// Run is like Main, in a process that also has another purpose. The current folder of the
// process is that of the program.
func Run(args, environ []string, process Process) int {
	code := process.run(args, environ)
	if err := process.Group.Remove(); err != nil { // of a program that did not start
		process.fail("%v", err)
	}
	return code
}
