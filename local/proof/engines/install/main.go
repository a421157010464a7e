// Command install installs real inference servers for tests into the cache, unless they are
// already there. See package servers.
//
//	go run ./local/proof/engines/install KIND...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sortie-dev/sortie/local/proof/engines/servers"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := install(ctx, os.Args[1:], os.Environ())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}

// install installs every server. It continues after a failure and returns all errors.
func install(ctx context.Context, kinds, environ []string) error {
	if len(kinds) == 0 {
		return fmt.Errorf("missing engine, want some of %v", servers.Kinds())
	}
	var failed []error
	for _, kind := range kinds {
		_, err := servers.Install(ctx, platform.EngineKind(kind), environ, func(format string, args ...any) { fmt.Printf(format+"\n", args...) })
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
