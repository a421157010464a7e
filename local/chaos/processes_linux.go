package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// find looks through /proc: a worker's HOME is in the folder, and so is the
// file that a supervisor has as its standard error.
func find(folder string) (ofFolder, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return ofFolder{}, fmt.Errorf("cannot list the processes: %w", err)
	}
	var found ofFolder
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// Whatever cannot be read is gone, or somebody else's.
		environ, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		problems, _ := os.Readlink(filepath.Join("/proc", entry.Name(), "fd", "2"))
		for each := range strings.SplitSeq(string(environ), "\x00") {
			if home, is := strings.CutPrefix(each, "HOME="); is && strings.HasPrefix(home, folder+"/") {
				found.workers = append(found.workers, process{pid, taskOf(filepath.Dir(home))})
			}
		}
		if strings.HasPrefix(problems, folder+"/") {
			found.supervisors = append(found.supervisors, process{pid, taskOf(filepath.Dir(problems))})
		}
	}
	return found, nil
}
