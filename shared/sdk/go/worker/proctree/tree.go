//go:build unix

package proctree

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Tree is a running program with its descendants.
type Tree struct {
	// PID is the process of the program, and its process group.
	PID    int
	ended  chan syscall.WaitStatus
	empty  chan struct{} // closed when no child is left
	reaped atomic.Int64
	group  *Group
}

// pause is how long Kill waits for the processes of a tree to end before it kills again.
// patience is the time without the end of a process after which Kill gives up. A killed process
// ends when it is scheduled, which takes seconds on a host with thousands of runnable processes.
const (
	pause    = time.Millisecond
	patience = 30 * time.Second
)

// Start starts a program in its own process group, and in the cgroup unless it is nil.
// A cgroup that the kernel does not accept is ignored. On Linux the kernel kills the
// program when the calling thread ends.
func Start(name string, argv []string, attributes os.ProcAttr, group *Group) (*Tree, error) {
	adopt()
	var process *os.Process
	err := errNoGroup
	if group != nil {
		attributes.Sys = ownGroup(group)
		process, err = os.StartProcess(name, argv, &attributes)
	}
	if err != nil {
		group = nil
		attributes.Sys = ownGroup(nil)
		process, err = os.StartProcess(name, argv, &attributes)
	}
	if err != nil {
		return nil, err
	}
	t := &Tree{PID: process.Pid, ended: make(chan syscall.WaitStatus, 1), empty: make(chan struct{}), group: group}
	_ = process.Release() // reap waits for the process
	go t.reap()
	return t, nil
}

// Ended returns a channel that receives how the program ended.
func (t *Tree) Ended() <-chan syscall.WaitStatus { return t.ended }

// Group returns the cgroup of the tree, or nil without one.
func (t *Tree) Group() *Group { return t.group }

// reap waits for the program and for every orphan that this process inherits.
func (t *Tree) reap() {
	defer close(t.empty)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return
		case pid == t.PID && (status.Exited() || status.Signaled()):
			t.ended <- status
		}
		t.reaped.Add(1)
	}
}

// Signal sends a signal to the program's process group. It returns no error if the group is
// gone.
func (t *Tree) Signal(s syscall.Signal) error { return ignoreGone(syscall.Kill(-t.PID, s)) }

// Kill kills the whole tree and returns when none of its processes is left. It returns an error
// if a process survives SIGKILL, such as one of another user.
func (t *Tree) Kill() error {
	before := t.reaped.Load()
	over := time.NewTimer(patience)
	defer over.Stop()
	for {
		select {
		case <-t.empty:
			return t.group.remove()
		case <-time.After(pause):
		}
		err := errors.Join(t.group.kill(), t.killDescendants())
		if now := t.reaped.Load(); now != before {
			before = now
			over.Reset(patience)
		}
		select {
		case <-over.C:
			return cmp.Or(err, fmt.Errorf("processes of the program are alive %s after SIGKILL", patience))
		default:
		}
	}
}

// ignoreGone ignores the errors of a signal to a group that has no live process.
func ignoreGone(err error) error {
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) {
		return nil // macOS returns EPERM for a group of zombies
	}
	return err
}

var errNoGroup = errors.New("no cgroup")
