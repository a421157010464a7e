package proctree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// asReaper makes the test binary a subreaper with children of its own.
const asReaper = "SORTIE_TEST_REAPER"

func TestMain(m *testing.M) {
	if os.Getenv(asReaper) != "" {
		if err := reap(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// reap starts children that leave orphans, and checks that each child keeps its exit
// status and that no orphan remains.
func reap() error {
	if Reaps() {
		return errors.New("got a subreaper before it is one")
	}
	adopt()
	if !Reaps() {
		return errors.New("got no subreaper")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- ReapOrphans(ctx) }()
	late := exec.Command("sh", "-c", "exit 7") // ends long before it is waited for
	if err := late.Start(); err != nil {
		return err
	}
	var failed [40]error
	var children sync.WaitGroup
	for i := range failed {
		children.Go(func() {
			err := exec.Command("sh", "-c", fmt.Sprintf("for i in 1 2 3; do (sleep 0.0$i &); done; exit %d", i+1)).Run()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != i+1 {
				failed[i] = fmt.Errorf("got %w of child %d, want its exit code", err, i)
			}
		})
	}
	children.Wait()
	for ctx.Err() == nil {
		children, err := exec.Command("ps", "-o", "stat=,comm=", "--ppid", fmt.Sprint(os.Getpid())).Output()
		if err != nil {
			return err
		}
		if !bytes.Contains(children, []byte("sleep")) {
			cancel()
		}
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		return errors.New("got orphans after a minute, want none")
	}
	if err := late.Wait(); late.ProcessState == nil || late.ProcessState.ExitCode() != 7 {
		return fmt.Errorf("got %w of the child that is waited for late, want its exit code", err)
	}
	return errors.Join(append(failed[:], <-ended)...)
}

func TestOrphansAreReapedAndChildrenAreNot(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), asReaper+"=1")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("got %v: %s", err, strings.TrimSpace(string(text)))
	}
}
