package main

import (
	"os"
	"runtime"
	"syscall"
)

// peakOf is the most memory that a process that has ended was resident with.
func peakOf(state *os.ProcessState) (bytes int64, ok bool) {
	used, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, false
	}
	if runtime.GOOS == "darwin" {
		return used.Maxrss, true
	}
	return used.Maxrss << 10, true
}
