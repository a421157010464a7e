//go:build unix && !linux

package wrap

import "syscall"

func adopt() {}

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
