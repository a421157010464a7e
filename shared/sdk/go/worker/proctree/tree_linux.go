package proctree

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

const prSetChildSubreaper = 36 // linux/prctl.h

// adopt makes this process the parent of the orphans among its descendants.
func adopt() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0) //nolint:dogsled // an old kernel refuses it
}

// ownGroup returns attributes that give the program its own process group, kill it with its
// parent, and start it in a cgroup.
func ownGroup(g *Group) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if g != nil {
		attributes.UseCgroupFD, attributes.CgroupFD = true, int(g.dir.Fd())
	}
	return attributes
}

// killDescendants sends SIGKILL to every descendant of this process. It stops them first, so
// that they cannot start others when a process ends. Without /proc it reaches only the process
// group.
func (t *Tree) killDescendants() error {
	self := os.Getpid()
	_, err := killAll(func(p process, in map[int]bool) bool { return p.parent == self || in[p.parent] })
	if err != nil {
		err = errors.Join(err, t.Signal(syscall.SIGKILL))
	}
	return err
}

// KillTree kills a subreaper and all its descendants. Without /proc it reaches only the process
// group. It returns no error if the process is gone.
func KillTree(pid int) error {
	_, err := killAll(func(p process, in map[int]bool) bool { return p.pid == pid || in[p.parent] })
	if err != nil {
		err = errors.Join(err, ignoreGone(syscall.Kill(-pid, syscall.SIGKILL)))
	}
	return err
}

// mostPasses limits the passes of killAll, so that its caller can act.
const mostPasses = 50

// killAll stops the processes that belongs accepts until a pass finds no further one, and then
// kills them. It returns their number. in contains the processes that the same pass found
// before.
func killAll(belongs func(p process, in map[int]bool) bool) (int, error) {
	var failed error
	frozen := map[process]bool{}
	for range mostPasses {
		found, err := pass(belongs, func(p process) {
			if !frozen[p] {
				failed = errors.Join(failed, p.signal(syscall.SIGSTOP))
			}
		})
		if err != nil {
			return 0, err
		}
		known := true
		for _, p := range found {
			p.parent = 0 // it changes when a parent ends
			known = known && frozen[p]
			frozen[p] = true
		}
		if known {
			break
		}
	}
	for p := range frozen {
		failed = errors.Join(failed, p.signal(syscall.SIGKILL))
	}
	return len(frozen), failed
}

// pass returns the processes that belong, and calls each as early as possible. It finds a child
// with a lower number than its parent after the others.
func pass(belongs func(p process, in map[int]bool) bool, each func(process)) (found []process, err error) {
	in := map[int]bool{}
	add := func(p process) {
		in[p.pid] = true
		found = append(found, p)
		p.parent = 0
		each(p)
	}
	var rest []process
	err = processes(func(p process) {
		if belongs(p, in) {
			add(p)
			return
		}
		rest = append(rest, p)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the processes: %w", err)
	}
	for before := -1; before != len(found); {
		before = len(found)
		for _, p := range rest {
			if !in[p.pid] && belongs(p, in) {
				add(p)
			}
		}
	}
	return found, nil
}
