// Sortie is the command line: the local stack, and a client of any server.
//
//	go run ./local/sortie --help
package main

import (
	"context"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"golang.org/x/term"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/command"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

func main() {
	if code, ok := started(os.Args, os.Environ()); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so a second signal ends the process at once
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	os.Exit(command.Main(ctx, cli.Program{
		Name: name(os.Args[0], executable), Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: os.LookupEnv, Environ: os.Environ(), Clock: clock.System{}, Random: rand.Uint64, Width: columns(os.Stderr), Size: size(os.Stdout), Zone: time.Local, //nolint:gosmopolitan // the zone of the user is what a terminal shows
		AWS:        func(ctx context.Context) (aws.Config, error) { return config.LoadDefaultConfig(ctx) },
		Executable: []string{executable},
	}))
}

// name returns the command with which the user starts this program. "go run" builds it in a
// temporary folder that is gone afterwards.
func name(typed, executable string) string {
	switch {
	case strings.Contains(executable, "/go-build"):
		return "go run ./local/sortie"
	case strings.ContainsRune(typed, filepath.Separator):
		return typed
	}
	return filepath.Base(typed)
}

// columns returns a function that returns the width of the terminal in columns. It returns nil
// if size does.
func columns(file *os.File) func() int {
	of := size(file)
	if of == nil {
		return nil
	}
	return func() int {
		width, _ := of()
		return width
	}
}

// size returns a function that returns the columns and rows of the terminal. It returns nil if
// file is not a terminal that can erase a line.
func size(file *os.File) func() (columns, rows int) {
	if !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() (columns, rows int) {
		columns, rows, err := term.GetSize(int(file.Fd()))
		if err != nil || columns < 1 || rows < 1 {
			return 80, 24
		}
		return columns, rows
	}
}
