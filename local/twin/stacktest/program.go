package stacktest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/functions/worker/program"
	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/local/twin/stack"
)

// The words that make a test binary another program.
const (
	wordWorker, wordSupervisor = "worker", "machine-supervisor"
	wordServe, wordPlay        = "serve", "play"
)

// Program is what a test binary can be: it gets its words and its environment,
// and gives the exit code.
type Program func(words []string, env map[string]string) int

// Main is what is left of a TestMain. It ends the process. args and environ are
// the process's own; more are further programs, by the name that Config.Program
// has for them.
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
			return program.Main(context.Background(), environ, os.Stderr)
		},
		wordSupervisor: func(words []string, _ map[string]string) int { return flymachines.Supervise(words) },
		wordServe:      func([]string, map[string]string) int { return serve() },
		wordPlay:       Play,
	}
	maps.Copy(all, more)
	return all
}

// serve is a stack in a process of its own. Its Config comes as JSON on
// standard input, its addresses go out. SIGTERM stops it.
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
		fmt.Fprintln(os.Stderr, "a part has failed:", err)
	}
	if err := s.Stop(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "the stack does not stop:", err)
		return 1
	}
	return 0
}
