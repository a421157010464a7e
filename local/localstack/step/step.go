// Package step runs the programs that others are made of: pip, Maven, npm, Go,
// the CDK.
//
// What a program prints goes into a file; where the program fails, the error
// has the end of it, so that nobody has to look for the file. A program and all
// that it has started end with the context.
package step

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Program is one call.
type Program struct {
	// Path is the program's file.
	Path string
	Args []string
	// Dir is its working folder; empty is this process's.
	Dir string
	// Env is its whole environment, as NAME=VALUE.
	Env []string
	// Log is the file that gets its output, anew. Where Output is set, that
	// gets it instead.
	Log    string
	Output io.Writer
}

// Failure is a program that failed.
type Failure struct {
	// What was to be done, for "cannot ...".
	What string
	// Tail is the end of what the program printed.
	Tail string
	// Log is the file that has all of it.
	Log string
	Err error
}

// Error has the tail, for it is what a reader needs.
func (f *Failure) Error() string {
	return fmt.Sprintf("cannot %s: %v; the end of %s:\n%s", f.What, f.Err, f.Log, f.Tail)
}

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// patience is what a program may take to end when it is asked to.
const patience = 10 * time.Second

// Run runs a program to its end. What says what it is for, as "install ...".
func Run(ctx context.Context, what string, p Program) error {
	if p.Output != nil {
		if err := run(ctx, p, p.Output); err != nil && ctx.Err() == nil {
			return fmt.Errorf("cannot %s: %w", what, err)
		}
		return ended(ctx, what)
	}
	if err := os.MkdirAll(filepath.Dir(p.Log), 0o750); err != nil {
		return fmt.Errorf("cannot keep a log: %w", err)
	}
	log, err := os.Create(p.Log)
	if err != nil {
		return fmt.Errorf("cannot keep a log: %w", err)
	}
	err = run(ctx, p, log)
	if closed := log.Close(); err == nil && closed != nil {
		err = closed
	}
	if err != nil && ctx.Err() == nil {
		return &Failure{What: what, Tail: Tail(p.Log), Log: p.Log, Err: err}
	}
	return ended(ctx, what)
}

func run(ctx context.Context, p Program, output io.Writer) error {
	command := exec.CommandContext(ctx, p.Path, p.Args...)
	command.Dir, command.Env, command.Stdout, command.Stderr = p.Dir, p.Env, output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = patience
	return command.Run()
}

// ended says that the context ended a step, whatever became of its program.
func ended(ctx context.Context, what string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("stopped while trying to %s: %w", what, context.Cause(ctx))
	}
	return nil
}

// tailLines and tailBytes bound what an error shows of a log.
const (
	tailLines = 30
	tailBytes = 6 << 10
)

// Tail gives the last lines of a file, as far as it can be read.
func Tail(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// Environ is an environment with variables replaced or added, and without
// those of AWS: no step may ever reach an account.
func Environ(environ []string, set ...string) []string {
	own := map[string]bool{}
	for _, each := range set {
		name, _, _ := strings.Cut(each, "=")
		own[name] = true
	}
	var list []string
	for _, each := range environ {
		name, _, _ := strings.Cut(each, "=")
		if !own[name] && !strings.HasPrefix(name, "AWS_") && !strings.HasPrefix(name, "CDK_") {
			list = append(list, each)
		}
	}
	return append(list, set...)
}
