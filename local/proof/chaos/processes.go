package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
)

// process is a process of a machine.
type process struct {
	pid int
	// task is the task of the machine.
	task string
}

func (p process) String() string {
	if p.pid == 0 {
		return ""
	}
	return fmt.Sprintf(": process %d of %s", p.pid, p.task)
}

// machineProcesses are the processes of the machines in a data folder.
type machineProcesses struct{ workers, supervisors []process }

func (f machineProcesses) count() int { return len(f.workers) + len(f.supervisors) }

// signalProcess sends a signal to a process of the folder. It returns false if the process has
// ended, even if its id was reused. It opens the handle before the check, because a handle
// always refers to the same process.
func signalProcess(folder string, pid int, signal syscall.Signal) (injected bool, err error) {
	handle, err := os.FindProcess(pid)
	if err != nil {
		return false, nil //nolint:nilerr // it is gone
	}
	defer func() { _ = handle.Release() }()
	now, err := findProcesses(folder)
	if err != nil {
		return false, err
	}
	for _, p := range append(now.workers, now.supervisors...) {
		if p.pid != pid {
			continue
		}
		err := handle.Signal(signal)
		if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("cannot signal process %d: %w", pid, err)
		}
		return true, nil
	}
	return false, nil
}

// taskOf returns the task of a machine's folder, or "" if the folder is gone.
func taskOf(dir string) string {
	var record struct {
		Config struct {
			Env map[string]string `json:"env"`
		} `json:"config"`
	}
	if durable.Last(filepath.Join(dir, "machine.json"), &record) != nil {
		return ""
	}
	return record.Config.Env["TASK_ID"]
}
