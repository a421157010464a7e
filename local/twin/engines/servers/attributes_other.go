//go:build !linux

package servers

import "syscall"

// attributes gives a server a process group.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
