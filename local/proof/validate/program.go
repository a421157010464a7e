package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// clientLimit bounds how long a check with programs takes.
const clientLimit = 2 * time.Minute

// spawn starts a client or a receiver of another author, which is killed at the end of
// ctx, and returns its output.
func (k *kit) spawn(ctx context.Context, args []string, environ ...string) (*bufio.Reader, error) {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Env = slices.Concat(k.environ, []string{"NODE_PATH=" + filepath.Join(k.installed, "node_modules")}, environ)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", filepath.Base(args[0]), err)
	}
	k.programs = append(k.programs, command)
	return bufio.NewReader(output), nil
}
