//go:build unix

package wrap

import (
	"cmp"
	"fmt"
	"syscall"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// rules are the meanings of exit codes that the flags set.
type rules struct {
	category  map[int]string
	retryable map[int]bool
}

// end is the result of a program.
type end struct {
	code   int            // the exit code, or 128 + the signal's number
	signal syscall.Signal // 0 if the program exited
}

func endOf(status syscall.WaitStatus) end {
	if status.Signaled() {
		return end{128 + int(status.Signal()), status.Signal()}
	}
	return end{code: status.ExitStatus()}
}

// ofChild returns the signal that a shell reports for its child as 128 + number, or 0 for
// another code. It is used only for the category, because a program can choose the same code
// itself.
func (e end) ofChild() syscall.Signal {
	if e.signal == 0 && e.code > 128 && e.code < 160 {
		return syscall.Signal(e.code - 128)
	}
	return 0
}

// String describes the end for a message.
func (e end) String() string {
	if s := e.signal; s != 0 {
		text := fmt.Sprintf("ended by signal %d (%s)", int(s), s)
		if s == syscall.SIGKILL {
			text += ", usually out of memory"
		}
		return text
	}
	return fmt.Sprintf("exit code %d", e.code)
}

// categoryOf returns the category of an end that is not exit code 0.
func (r rules) categoryOf(e end) string {
	if category, ok := r.category[e.code]; ok {
		return category
	}
	switch cmp.Or(e.signal, e.ofChild()) {
	case 0:
		return byCode(e.code)
	case syscall.SIGXCPU:
		return contract.CategoryTimeout
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP:
		return contract.CategoryInfrastructure
	}
	return contract.CategoryUserCode
}

// byCode returns the category of an exit code by the conventions of sysexits.h,
// timeout(1) and the shell.
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

// retryableOf returns whether the flags make an end retryable. nil means that the category
// decides.
func (r rules) retryableOf(e end) *bool {
	if retryable, ok := r.retryable[e.code]; ok {
		return &retryable
	}
	return nil
}
