package process

import (
	"io"
	"os"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Host gives a process access to its operating system.
type Host struct {
	Args []string
	// Env looks up a variable like os.LookupEnv. Environ is the result of os.Environ.
	Env     func(name string) (string, bool)
	Environ []string
	// Out receives log lines and metrics, Err the problems that -check finds.
	Out, Err io.Writer
	Clock    clock.Clock
	Exit     func(code int)
}

// Start returns the process of the named function on this host. It is for main. Tests pass a
// Host to New.
func Start(name string) *Process { return New(name, thisHost()) }

// StartStep returns the process of the step function named by SORTIE_STEP. The name must be in
// functions. It is for main. Tests pass a Host to NewStep.
func StartStep(functions []string) *Process { return NewStep(functions, thisHost()) }

func thisHost() Host {
	return Host{Args: os.Args[1:], Env: os.LookupEnv, Environ: os.Environ(), Out: os.Stdout, Err: os.Stderr, Clock: clock.System{}, Exit: os.Exit}
}
