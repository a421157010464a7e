package kubernetes

import "syscall"

// attributes lets the kernel kill a program of the control plane with this process.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
