package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

var errNoProcess = errors.New("no such process")

// identify returns the process's birth: the boot, and the ticks since then. It
// returns errNoProcess for a process that is gone or a zombie.
func identify(pid int) (*process, error) {
	stat, err := readStat(pid)
	if err != nil {
		return nil, err
	}
	if stat.state == "Z" || stat.state == "X" {
		return nil, errNoProcess
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("cannot read the boot id: %w", err)
	}
	return &process{PID: pid, Born: strings.TrimSpace(string(boot)) + "/" + stat.born}, nil
}

type stat struct {
	state, born    string
	group, session int
}

// readStat reads fields 3, 5, 6 and 22 of /proc/PID/stat (proc(5)). The second
// field, a name in parentheses, may contain any character.
func readStat(pid int) (stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return stat{}, errNoProcess
	}
	if err != nil {
		return stat{}, fmt.Errorf("cannot inspect process %d: %w", pid, err)
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("cannot inspect process %d: stat has %d fields", pid, len(fields))
	}
	s := stat{state: fields[0], born: fields[19]}
	if s.group, err = strconv.Atoi(fields[2]); err == nil {
		s.session, err = strconv.Atoi(fields[3])
	}
	if err != nil {
		return stat{}, fmt.Errorf("cannot inspect process %d: %w", pid, err)
	}
	return s, nil
}

// members lists the live processes of a group within a session.
func members(group, session int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("cannot list the processes: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		s, err := readStat(pid)
		if err == nil && s.group == group && s.session == session && s.state != "Z" && s.state != "X" {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
