//go:build !linux

package kubernetes

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
