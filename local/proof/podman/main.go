//go:build linux

// Command podman runs a command with DOCKER_HOST set to a container engine for tests. The
// engine is a Podman service with its own images and containers. Podman stops and removes them
// when the command ends.
//
//	go run ./local/proof/podman go test -tags containers ./shared/adapter/container
//
// It needs Linux and root. If DOCKER_HOST or CONTAINER_HOST is set, it uses that engine. If
// Podman is not in the PATH, it downloads Debian's packages with apt-get into the cache,
// ${XDG_CACHE_HOME:-~/.cache}/sortie, and mounts them over /usr for the service only. It
// installs nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == serveCommand {
		fmt.Fprintln(os.Stderr, serve(os.Args[2:])) // it returns only if it fails
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		stop()
		os.Exit(ended.ExitCode()) //nolint:gocritic // stop is called
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "podman:", err)
		stop()
		os.Exit(1)
	}
}

// searchPath returns the PATH of this process.
func searchPath() string { return os.Getenv("PATH") }

// run runs the command with an engine.
func run(ctx context.Context, command []string) (err error) {
	if len(command) == 0 {
		return errors.New("missing command, want podman COMMAND [ARGUMENT...]")
	}
	address := os.Getenv("DOCKER_HOST")
	if address == "" {
		address = os.Getenv("CONTAINER_HOST")
	}
	if address == "" {
		s, err := start(ctx)
		if err != nil {
			return fmt.Errorf("no container engine for the tests: %w", err)
		}
		address = s.address
		defer func() { err = errors.Join(err, s.stop()) }()
	}
	c := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // G204: the caller's own command
	c.Env = append(os.Environ(), "DOCKER_HOST="+address)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	return c.Run()
}
