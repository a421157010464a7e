package process

import (
	"io"
	"os"

	"github.com/sortie-dev/sortie/shared/clock"
)

// Host is what a process has of the machine it runs on.
type Host struct {
	Args []string
	// Env is os.LookupEnv or its like.
	Env func(name string) (string, bool)
	// Out takes log lines and metrics, Err the problems of -check.
	Out, Err io.Writer
	Clock    clock.Clock
	Exit     func(code int)
}

// Start makes the process of the function called name, the folder's name, on
// this host. It is for main: everywhere else the host comes in by New.
func Start(name string) *Process {
	return New(name, Host{
		Args: os.Args[1:], Env: os.LookupEnv, Out: os.Stdout, Err: os.Stderr, Clock: clock.System{}, Exit: os.Exit,
	})
}
