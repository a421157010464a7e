//go:build unix && !linux

package main

import "syscall"

func adopt() {}

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
