package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// process is one of a machine's.
type process struct {
	pid int
	// task is whose machine it is.
	task string
}

func (p process) String() string {
	if p.pid == 0 {
		return ""
	}
	return fmt.Sprintf(": process %d of %s", p.pid, p.task)
}

// ofFolder are the processes of the machines that a data folder has.
type ofFolder struct{ workers, supervisors []process }

func (f ofFolder) count() int { return len(f.workers) + len(f.supervisors) }

// strike sends a signal to a process of the folder, if that is what the number
// still belongs to. The handle comes first: it is of one process, whatever
// becomes of its number.
func strike(folder string, pid int, signal syscall.Signal) (injected bool, err error) {
	handle, err := os.FindProcess(pid)
	if err != nil {
		return false, nil //nolint:nilerr // it is gone
	}
	defer func() { _ = handle.Release() }()
	now, err := find(folder)
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

// taskOf reads whose machine a folder is; empty where that is gone.
func taskOf(dir string) string {
	var record struct {
		Config struct {
			Env map[string]string `json:"env"`
		} `json:"config"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "machine.json"))
	if err != nil || json.Unmarshal(text, &record) != nil {
		return ""
	}
	return record.Config.Env["TASK_ID"]
}
