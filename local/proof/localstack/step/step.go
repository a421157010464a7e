// Package step runs external programs: pip, Maven, npm, Go, the CDK.
//
// The output of a program goes to a file. If the program fails, the error contains the end of
// the file. The program and its children end with the context.
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

// Program is a program with the parameters of one run.
type Program struct {
	// Path is the file of the program.
	Path string
	Args []string
	// Dir is the working directory; "" is the directory of this process.
	Dir string
	// Env is the whole environment, as NAME=VALUE.
	Env []string
	// Log is the file for the output, which is truncated first. If Output is set, the output
	// goes to Output instead.
	Log    string
	Output io.Writer
}

// Failure is the error of a failed program.
type Failure struct {
	// What is the purpose of the run, as it follows "cannot" in the message.
	What string
	// Tail is the end of the output.
	Tail string
	// Log is the file with the whole output.
	Log string
	Err error
}

// Error returns a message with the tail.
func (f *Failure) Error() string {
	return fmt.Sprintf("cannot %s: %v; the end of %s:\n%s", f.What, f.Err, f.Log, f.Tail)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// patience is the time that a program has to end after SIGTERM.
const patience = 10 * time.Second

// Run runs a program and waits for its end. what is the purpose of the run, such as "install
// ...".
func Run(ctx context.Context, what string, p Program) error {
	if p.Output != nil {
		if err := run(ctx, p, p.Output); err != nil && ctx.Err() == nil {
			return fmt.Errorf("cannot %s: %w", what, err)
		}
		return ended(ctx, what)
	}
	if err := os.MkdirAll(filepath.Dir(p.Log), 0o750); err != nil {
		return fmt.Errorf("cannot create a log: %w", err)
	}
	log, err := os.Create(p.Log)
	if err != nil {
		return fmt.Errorf("cannot create a log: %w", err)
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

// ended returns an error if the context has ended, independent of the program's result.
func ended(ctx context.Context, what string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted while trying to %s: %w", what, context.Cause(ctx))
	}
	return nil
}

// tailLines and tailBytes limit the part of a log in an error.
const (
	tailLines = 30
	tailBytes = 6 << 10
)

// Tail returns the last lines of a file, or a message if it cannot be read.
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

// Environ returns the environment with the variables in set added or replaced. It removes the
// AWS variables, so that no step can reach an account.
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
