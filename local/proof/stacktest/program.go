package stacktest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/functions/worker"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/wrap"
)

// The arguments that turn a test binary into another program.
const (
	wordWorker, wordSupervisor = "worker", supervisor.Command
	wordServe, wordPlay        = "serve", "play"
)

// Program is a program in a test binary. It receives its arguments and its
// environment and returns the exit code.
type Program func(words []string, env map[string]string) int

// AtOnce sets the number of tests that run in parallel. It may exceed the number of CPUs for
// tests that mostly wait for processes. The flag -parallel overrides it.
func AtOnce(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// Main runs the program that args name, or the tests, and exits. args and environ are the
// arguments and environment of the process. more has further programs; its keys are the names
// in Config.Program.
func Main(m *testing.M, args, environ []string, more map[string]Program) {
	if len(args) > 1 {
		if program, ok := programs(environ, more)[args[1]]; ok {
			env := map[string]string{}
			for _, each := range environ {
				name, value, _ := strings.Cut(each, "=")
				env[name] = value
			}
			os.Exit(program(args[2:], env))
		}
	}
	os.Exit(m.Run())
}

func programs(environ []string, more map[string]Program) map[string]Program {
	all := map[string]Program{
		wordWorker: func([]string, map[string]string) int {
			return worker.Main(context.Background(), environ, os.Stderr)
		},
		wordSupervisor: func(words []string, _ map[string]string) int { return supervisor.Main(words) },
		wrap.Command:   func(words []string, _ map[string]string) int { return wrap.Main(words, environ) },
		wordServe:      func([]string, map[string]string) int { return serve() },
		wordPlay:       Play,
	}
	maps.Copy(all, more)
	return all
}

// serve runs a stack. It reads its Config from standard input and writes its
// addresses to standard output, both as JSON. SIGTERM stops it.
func serve() int {
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	var given Config
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		return 2
	}
	config, err := given.Stack(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	s, err := stack.Start(stop, config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(s.Addresses()); err != nil {
		return 1
	}
	select {
	case <-stop.Done():
	case err := <-s.Failed():
		fmt.Fprintln(os.Stderr, "a part failed:", err)
	}
	if err := s.Stop(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "cannot stop the stack:", err)
		return 1
	}
	return 0
}
