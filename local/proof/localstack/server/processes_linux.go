package server

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// listed returns the IDs of the processes on this host for which is returns true. line is the
// command line, followed by a space. A process with an unreadable command line has ended or
// belongs to another user. A zombie has no command line.
func (s Server) listed(_ context.Context, is func(line []byte) bool) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("cannot list the processes: %w", err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if is(bytes.ReplaceAll(line, []byte{0}, []byte(" "))) {
			found = append(found, pid)
		}
	}
	return found, nil
}
