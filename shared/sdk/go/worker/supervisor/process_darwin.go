package supervisor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

var errNoProcess = errors.New("no such process")

// zombie is SZOMB of sys/proc.h.
const zombie = 5

// identify returns the process's birth, in microseconds since the epoch. It
// returns errNoProcess for a process that is gone or a zombie.
func identify(pid int) (*process, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EIO) {
		return nil, errNoProcess // the answer is empty if there is no such process
	}
	if err != nil {
		return nil, fmt.Errorf("cannot inspect process %d: %w", pid, err)
	}
	if info.Proc.P_stat == zombie {
		return nil, errNoProcess
	}
	born := info.Proc.P_starttime
	return &process{PID: pid, Born: fmt.Sprintf("%d.%06d", born.Sec, born.Usec)}, nil
}

// members lists the live processes of a group. The session's number is not
// available here; a group's number is not reused while the group has members.
func members(group, _ int) ([]int, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", group)
	if err != nil {
		return nil, fmt.Errorf("cannot list the processes of group %d: %w", group, err)
	}
	var pids []int
	for _, info := range infos {
		if info.Proc.P_stat != zombie {
			pids = append(pids, int(info.Proc.P_pid))
		}
	}
	return pids, nil
}
