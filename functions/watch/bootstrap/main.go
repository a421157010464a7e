// The agent of the container image reports the machines of a Kubernetes cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sortie-dev/sortie/functions/watch/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := program.Main(ctx, os.Environ(), os.Stderr)
	stop()
	os.Exit(code)
}
