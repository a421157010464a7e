package worker

import (
	"bytes"
	"os"
	"strconv"
)

// PeakMemory is the largest resident set of this process so far, in bytes; 0
// where it cannot be told. It is the kernel's VmHWM. (getrusage would not do:
// on Linux its figure outlives exec, so that a small program that was started
// by a large one reports the large one's.)
func PeakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10
}
