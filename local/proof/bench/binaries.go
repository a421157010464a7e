package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// build builds a program without symbols, as it is deployed.
func build(ctx context.Context, to, what string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, what)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w: %s", what, err, text)
	}
	return nil
}

// measureBinaries measures the size of the programs and the start of the local
// stack.
func measureBinaries(ctx context.Context, t *table) error {
	folder, err := os.MkdirTemp("", "sortie-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	for name, what := range map[string]string{
		"sortie": "./local/sortie", "worker": "./functions/worker/bootstrap", "sortie-exec": "./shared/sdk/go/sortie-exec",
	} {
		to := filepath.Join(folder, name)
		if err := build(ctx, to, what); err != nil {
			return err
		}
		info, err := os.Stat(to)
		if err != nil {
			return err
		}
		t.add("binary "+name, "size", "%.1f MB", float64(info.Size())/1e6)
	}
	for _, start := range []string{"first", "second"} {
		command := exec.CommandContext(ctx, filepath.Join(folder, "sortie"), "dev", "--json", "--addr", "127.0.0.1:0", "--data", filepath.Join(folder, "data"))
		output, err := command.StdoutPipe()
		if err != nil {
			return err
		}
		startedAt := time.Now()
		if err := command.Start(); err != nil {
			return err
		}
		if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
			return fmt.Errorf("cannot start the stack: %w", err)
		}
		t.add("binary sortie", "from start to ready, "+start+" time", "%.0f ms", millis(time.Since(startedAt)))
		if used, err := usageOf(command.Process.Pid); err == nil {
			t.add("binary sortie", "memory when ready, "+start+" time", "%.0f MB", float64(used.resident)/1e6)
		}
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		if err := command.Wait(); err != nil {
			return err
		}
	}
	return nil
}
