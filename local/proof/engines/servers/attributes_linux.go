package servers

import "syscall"

// attributes starts a server in its own process group. The kernel kills it when this process
// ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
