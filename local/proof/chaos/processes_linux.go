package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// findProcesses finds the machines' processes in /proc. A worker has its HOME in the folder, a
// supervisor its standard error file.
func findProcesses(folder string) (machineProcesses, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return machineProcesses{}, fmt.Errorf("cannot list the processes: %w", err)
	}
	var found machineProcesses
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// An unreadable process has ended or belongs to another user.
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

// commandOf returns the program, arguments and environment of a process.
func commandOf(pid int) (program string, args, env []string, err error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	if program, err = os.Readlink(filepath.Join(folder, "exe")); err != nil {
		return "", nil, nil, fmt.Errorf("cannot read the program of process %d: %w", pid, err)
	}
	words, err := os.ReadFile(filepath.Join(folder, "cmdline"))
	if err != nil {
		return "", nil, nil, fmt.Errorf("cannot read the arguments of process %d: %w", pid, err)
	}
	environ, err := os.ReadFile(filepath.Join(folder, "environ"))
	if err != nil || len(environ) == 0 || len(words) == 0 {
		return "", nil, nil, fmt.Errorf("cannot read the environment of process %d: %w", pid, errors.Join(err, os.ErrProcessDone))
	}
	if now, err := os.Readlink(filepath.Join(folder, "exe")); err != nil || now != program {
		return "", nil, nil, fmt.Errorf("process %d runs another program now: %w", pid, errors.Join(err, os.ErrProcessDone))
	}
	args = strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
	for each := range strings.SplitSeq(strings.TrimSuffix(string(environ), "\x00"), "\x00") {
		if !strings.HasPrefix(each, "HOME=") && !strings.HasPrefix(each, "TMPDIR=") {
			env = append(env, each)
		}
	}
	return program, args[1:], env, nil
}
