package servers

import "syscall"

// attributes gives a server a process group, and lets the kernel kill it with this process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
