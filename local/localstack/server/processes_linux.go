package server

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// listed returns the processes of this host whose command line, followed by a
// space, matches. A process whose command line cannot be read is gone or
// belongs to another user; a zombie has no command line.
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
