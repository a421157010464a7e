//go:build unix

package main

import (
	"context"
	"os"

	"github.com/sortie-dev/sortie/functions/worker"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

// started runs a worker or a supervisor, as which the local system starts this program many
// times, and returns its exit code. It reports whether the arguments name one of them.
func started(args, environ []string) (code int, ok bool) {
	switch {
	case len(args) == 2 && args[1] == "worker": // with more arguments it is a command
		return worker.Main(context.Background(), environ, os.Stderr), true
	case len(args) > 1 && args[1] == supervisor.Command:
		return supervisor.Main(args[2:]), true
	}
	return 0, false
}
