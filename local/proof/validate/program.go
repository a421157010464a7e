package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// clientLimit limits the time of a check with programs.
const clientLimit = 2 * time.Minute

// nodePath returns the variable with which Node finds the installed packages.
func (k *kit) nodePath() []string {
	return []string{"NODE_PATH=" + filepath.Join(k.installed, "node_modules")}
}

// spawn starts a third-party client or receiver and returns its output. At the end of ctx the
// program and its child processes are killed.
func (k *kit) spawn(ctx context.Context, args []string, environ ...string) (*bufio.Reader, error) {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Env = slices.Concat(k.environ, k.nodePath(), environ)
	command.Stderr = os.Stderr
	// Debian's Chromium is a script that starts a browser, which starts more processes.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", filepath.Base(args[0]), err)
	}
	k.mu.Lock()
	k.programs = append(k.programs, command)
	k.mu.Unlock()
	return bufio.NewReader(output), nil
}
