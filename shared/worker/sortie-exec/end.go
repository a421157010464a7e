//go:build unix

package main

import (
	"fmt"
	"syscall"

	"github.com/sortie-dev/sortie/shared/contract"
)

// rules are what the flags say about exit codes.
type rules struct {
	category  map[int]string
	retryable map[int]bool
}

// end is how a program ended.
type end struct {
	code   int            // its exit code, or 128 and the signal's number
	signal syscall.Signal // 0 where it exited
}

func endOf(status syscall.WaitStatus) end {
	if status.Signaled() {
		return end{128 + int(status.Signal()), status.Signal()}
	}
	return end{code: status.ExitStatus()}
}

// cause is the signal that ended it, also where a shell said so for its own
// child; 0 where there was none.
func (e end) cause() syscall.Signal {
	if e.signal == 0 && e.code > 128 && e.code < 160 {
		return syscall.Signal(e.code - 128)
	}
	return e.signal
}

// String says it in a message.
func (e end) String() string {
	text := fmt.Sprintf("exit code %d", e.code)
	if s := e.cause(); s != 0 {
		text = fmt.Sprintf("ended by signal %d (%s)", int(s), s)
		if s == syscall.SIGKILL {
			text += ", mostly for want of memory"
		}
	}
	return text
}

// category is what an end that is not 0 means.
func (r rules) of(e end) string {
	if category, ok := r.category[e.code]; ok {
		return category
	}
	switch e.cause() {
	case 0:
		return byCode(e.code)
	case syscall.SIGXCPU:
		return contract.CategoryTimeout
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP:
		return contract.CategoryInfrastructure
	}
	return contract.CategoryUserCode
}

// byCode knows the codes of sysexits.h, of timeout(1) and of the shell.
func byCode(code int) string {
	switch code {
	case 64, 77, 78, exitCannotRun, exitNotFound:
		return contract.CategoryConfiguration
	case 65, 66:
		return contract.CategoryDataQuality
	case 69, 71, 72, 73, 74, 75, 76:
		return contract.CategoryInfrastructure
	case 124:
		return contract.CategoryTimeout
	}
	return contract.CategoryUserCode
}

// retry is what the flags say; nil leaves it to the category.
func (r rules) retry(e end) *bool {
	if says, ok := r.retryable[e.code]; ok {
		return &says
	}
	return nil
}
