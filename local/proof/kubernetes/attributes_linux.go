package kubernetes

import "syscall"

// attributes makes the kernel kill a program of the control plane when this process ends.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
