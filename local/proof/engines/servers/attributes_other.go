//go:build !linux

package servers

import "syscall"

// attributes starts a server in its own process group.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
