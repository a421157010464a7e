package main

import "syscall"

const prSetChildSubreaper = 36 // linux/prctl.h

// adopt makes the orphans of the program this process' own, so that they are
// waited for.
func adopt() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0) //nolint:dogsled // an old kernel does without
}

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
