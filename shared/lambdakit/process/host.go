package process

import (
	"io"
	"os"

	"github.com/sortie-dev/sortie/shared/clock"
)

// Host is a process's access to its operating system.
type Host struct {
	Args []string
	// Env is os.LookupEnv or its like, Environ os.Environ's list.
	Env     func(name string) (string, bool)
	Environ []string
	// Out takes log lines and metrics, Err the problems of -check.
	Out, Err io.Writer
	Clock    clock.Clock
	Exit     func(code int)
}

// Start returns the process of the named function on this host. It is for main;
// tests pass a Host to New.
func Start(name string) *Process { return New(name, thisHost()) }

// StartStep returns the process of the step function that SORTIE_STEP names, which
// must be one of functions. It is for main; tests pass a Host to NewStep.
func StartStep(functions []string) *Process { return NewStep(functions, thisHost()) }

func thisHost() Host {
	return Host{Args: os.Args[1:], Env: os.LookupEnv, Environ: os.Environ(), Out: os.Stdout, Err: os.Stderr, Clock: clock.System{}, Exit: os.Exit}
}
