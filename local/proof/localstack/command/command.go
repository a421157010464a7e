// Package command is the command line of local/proof/localstack. It finds the repository, the cache
// and the host's programs, and calls the other packages in local/proof/localstack.
//
// Progress goes to standard error, results go to standard output. An error message says what to
// do, or has the end of the failed program's log.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/proof/localstack/cache"
	"github.com/sortie-dev/sortie/local/proof/localstack/prerequisites"
	"github.com/sortie-dev/sortie/local/proof/localstack/server"
	"github.com/sortie-dev/sortie/local/proof/localstack/step"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Program is the process of a command.
type Program struct {
	// Args are the arguments without the name of the program.
	Args   []string
	Stdout io.Writer
	Stderr io.Writer
	// Env looks up an environment variable. Environ is the whole environment, as NAME=VALUE.
	Env     func(string) (string, bool)
	Environ []string
	Clock   clock.Clock
	// Executable is the file of this program. Machines run it as their supervisor and as the
	// export worker.
	Executable string
}

// Main runs the command in the arguments until it ends or ctx ends, and returns the exit code.
func Main(ctx context.Context, p Program) int {
	a := &app{Program: p}
	root := a.root()
	root.SetArgs(p.Args)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if ctx.Err() != nil {
		a.say("interrupted")
		return 130
	}
	_, _ = fmt.Fprintln(p.Stderr, "localstack:", err)
	return 1
}

// app is one invocation of the program.
type app struct {
	Program
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "localstack",
		Short: "Run Sortie's deployment in LocalStack",
		Long: `Run Sortie's deployment in LocalStack, without an account and, if need be, without
Docker.

The environment decides:
  LOCALSTACK        "python" (the default), or "docker" for the image
  LOCALSTACK_PORT   where it listens on 127.0.0.1; 4566. Servers on two ports may run at once
  LOCALSTACK_CACHE  the folder for downloads and servers; without it, downloads are in
                    ~/.cache/sortie/localstack and servers in .localstack in the repository
  PYTHON313         the file of a Python 3.13, where it is not found by itself`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(a.adapters(), a.chaos(), a.start(), a.deploy(), a.destroy(), a.env(), a.machines(), a.status(), a.stop(), a.test())
	return root
}

// does converts a function to the action of a command.
func does(action func(context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error { return action(cmd.Context()) }
}

// say prints progress.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Stderr, "  "+format+"\n", args...)
}

// lookup returns an environment variable, or fallback if it is not set or empty.
func (a *app) lookup(name, fallback string) string {
	if value, ok := a.Env(name); ok && value != "" {
		return value
	}
	return fallback
}

// module is the first line of go.mod in the root folder of the repository.
const module = "module github.com/sortie-dev/sortie\n"

// repository returns the root folder of the repository that contains the working directory.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the working directory: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && len(text) >= len(module) && string(text[:len(module)]) == module {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not in Sortie's repository: run this command inside of it")
		}
		dir = parent
	}
}

// place has the repository, the cache and the server of a command.
type place struct {
	repository string
	cache      cache.Cache
	server     server.Server
	docker     bool
}

func (a *app) place() (place, error) {
	root, err := repository()
	if err != nil {
		return place{}, err
	}
	caches := a.lookup("XDG_CACHE_HOME", filepath.Join(a.lookup("HOME", root), ".cache"))
	downloads, servers := filepath.Join(caches, "sortie", "localstack"), filepath.Join(root, ".localstack")
	if folder := a.lookup("LOCALSTACK_CACHE", ""); folder != "" {
		if folder, err = filepath.Abs(folder); err != nil {
			return place{}, fmt.Errorf("cannot find the cache: %w", err)
		}
		downloads, servers = folder, folder
	}
	given := a.lookup("LOCALSTACK_PORT", "4566")
	port, err := strconv.Atoi(given)
	if err != nil || port < 1 || port > 65535 {
		return place{}, fmt.Errorf("LOCALSTACK_PORT %q: want a port from 1 to 65535", given)
	}
	p := place{
		repository: root,
		cache:      cache.Cache{Dir: downloads, Environ: step.Environ(a.Environ), Clock: a.Clock, Say: a.say},
		server:     server.Server{Port: port, Dir: filepath.Join(servers, "server-"+given), Clock: a.Clock, Say: a.say},
	}
	switch way := a.lookup("LOCALSTACK", "python"); way {
	case "python":
	case "docker":
		p.docker = true
	default:
		return place{}, fmt.Errorf("LOCALSTACK %q: want python or docker", way)
	}
	return p, nil
}

// equipped returns the place after it has found the host's programs.
func (a *app) equipped(ctx context.Context) (place, error) {
	p, err := a.place()
	if err != nil {
		return place{}, err
	}
	host := prerequisites.Host{Env: a.Env, Environ: p.cache.Environ}
	find := host.Python
	if p.docker {
		find = host.Docker
	}
	p.cache.Tools, err = find(ctx)
	return p, err
}
