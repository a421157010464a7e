package wrap

import "syscall"

const prSetChildSubreaper = 36 // linux/prctl.h

// adopt makes this process the parent of the program's orphans, so that reap waits
// for them.
func adopt() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0) //nolint:dogsled // an old kernel refuses it
}

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
