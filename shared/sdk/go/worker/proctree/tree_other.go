//go:build unix && !linux

package proctree

import "syscall"

func adopt() {}

func ownGroup(*Group) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killDescendants kills only the process group, because this kernel makes orphans children of
// its first process.
func (t *Tree) killDescendants() error { return t.Signal(syscall.SIGKILL) }

// Group is a cgroup, which this system does not have.
type Group struct{}

// NewGroup returns an error: this system has no cgroups.
func NewGroup(Mark) (*Group, error) { return nil, errNoGroup }

// Path returns the empty string.
func (*Group) Path() string { return "" }

// Remove does nothing on this system.
func (*Group) Remove() error { return nil }

func (*Group) kill() error   { return nil }
func (*Group) remove() error { return nil }

// KillTree kills the process group of a process.
func KillTree(pid int) error { return ignoreGone(syscall.Kill(-pid, syscall.SIGKILL)) }

// KillMarked does nothing on this system.
func KillMarked(Mark, string) (int, error) { return 0, nil }
