//go:build !linux

package server

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// listed returns the IDs of the processes on this host for which is returns true. line is the
// command line, followed by a space.
func (s Server) listed(ctx context.Context, is func(line []byte) bool) ([]int, error) {
	text, err := exec.CommandContext(ctx, "ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the processes: %w", err)
	}
	var found []int
	for line := range bytes.Lines(text) {
		number, command, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		pid, err := strconv.Atoi(string(number))
		if err == nil && pid != os.Getpid() && is(append(command, ' ')) {
			found = append(found, pid)
		}
	}
	return found, nil
}
