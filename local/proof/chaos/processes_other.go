//go:build unix && !linux

package chaos

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// findProcesses parses the output of ps, which shows the environment of the user's own
// processes. A worker has its HOME in the folder. Its supervisor is its parent process.
func findProcesses(folder string) (machineProcesses, error) {
	text, err := exec.Command("ps", "-axwwE", "-o", "pid=,ppid=,state=,command=").Output()
	if err != nil {
		return machineProcesses{}, fmt.Errorf("cannot list the processes: %w", err)
	}
	var found machineProcesses
	for _, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.Contains(line, " HOME="+folder+"/") || strings.HasPrefix(fields[2], "Z") {
			continue
		}
		_, rest, _ := strings.Cut(line, " HOME="+folder+"/")
		home, _, _ := strings.Cut(rest, " ")
		task := taskOf(filepath.Join(folder, filepath.Dir(home)))
		pid, _ := strconv.Atoi(fields[0])
		found.workers = append(found.workers, process{pid, task})
		if supervisor, _ := strconv.Atoi(fields[1]); supervisor > 1 {
			found.supervisors = append(found.supervisors, process{supervisor, task})
		}
	}
	return found, nil
}

// commandOf is not supported, because ps does not delimit the values of an environment.
func commandOf(int) (program string, args, env []string, err error) {
	return "", nil, nil, errors.ErrUnsupported
}
