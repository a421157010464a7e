package step

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestFailedProgramShowsOutput(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "logs", "pip.log")
	err := Run(t.Context(), "install", sh("seq 1 1000; echo 'no space left' >&2; exit 3", log))
	var failure *Failure
	if !errors.As(err, &failure) || failure.Log != log {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{"cannot install", "exit status 3", log, "\n1000\nno space left"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "\n900\n") {
		t.Error("the error has more than the end of the log")
	}
}

func TestOutputIsLogged(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	if err := Run(t.Context(), "speak", sh("echo $WORD", log, "WORD=hello")); err != nil {
		t.Fatal(err)
	}
	if Tail(log) != "hello" {
		t.Errorf("the log says %q", Tail(log))
	}
}

// npm and Maven start child processes.
func TestContextEndsChildren(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- Run(ctx, "wait", sh("exec 3>"+pipe+"; sleep 1000 & echo started >&3; wait", filepath.Join(dir, "log")))
	}()
	held, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	reader := bufio.NewReader(held)
	if line, err := reader.ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("the program says %q, error %v", line, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	// The pipe ends when all processes have closed it.
	if rest, err := io.ReadAll(reader); err != nil || len(rest) != 0 {
		t.Errorf("it still says %q, error %v", rest, err)
	}
}

// Tests must not use an AWS account that the host is configured for.
func TestEnvironHasNoAccount(t *testing.T) {
	t.Parallel()
	got := Environ(
		[]string{"PATH=/bin", "AWS_PROFILE=prod", "AWS_ACCESS_KEY_ID=AKIA", "CDK_DEFAULT_ACCOUNT=1", "HOME=/root"},
		"HOME=/cache", "AWS_REGION=us-east-1",
	)
	if want := []string{"PATH=/bin", "HOME=/cache", "AWS_REGION=us-east-1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func sh(script, log string, env ...string) Program {
	return Program{Path: "/bin/sh", Args: []string{"-c", script}, Log: log, Env: append(env, "PATH=/usr/bin:/bin")}
}
