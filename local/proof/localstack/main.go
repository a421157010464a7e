// Localstack starts and stops LocalStack, deploys to it, and tests the
// deployment.
//
//	go run ./local/proof/localstack --help
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sortie-dev/sortie/functions/worker"
	"github.com/sortie-dev/sortie/local/proof/localstack/command"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

func main() {
	// Machines run this program with one of these arguments.
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case command.WordWorker:
			os.Exit(worker.Main(context.Background(), os.Environ(), os.Stderr))
		case command.WordSupervisor:
			os.Exit(supervisor.Main(os.Args[2:]))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	os.Exit(command.Main(ctx, command.Program{
		Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr,
		Env: os.LookupEnv, Environ: os.Environ(), Clock: clock.System{}, Executable: executable,
	}))
}
