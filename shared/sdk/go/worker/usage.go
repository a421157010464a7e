package worker

import (
	"bytes"
	"os"
	"strconv"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Usage returns the resource figures of this process and of the child processes
// that it has waited for. Figures that the system does not report are nil.
//
// CPU time, in milliseconds, comes from getrusage. Peak memory, in bytes, is the
// greatest of PeakMemory, the peak of any child and, if this is the first process
// of its container, the peak of the control group. I/O, in bytes, counts read and
// write calls to files and to the network (rchar and wchar of /proc/self/io).
func Usage() contract.TaskMetrics {
	m := contract.TaskMetrics{CPUTimeMS: cpuTime()}
	if peak := max(PeakMemory(), childPeak(), groupPeak()); peak > 0 {
		m.PeakMemoryBytes = &peak
	}
	if text, err := os.ReadFile("/proc/self/io"); err == nil {
		m.IOReadBytes, m.IOWriteBytes = procField(text, "rchar:"), procField(text, "wchar:")
	}
	return m
}

// PeakMemory returns the largest resident set of this process so far, in bytes, or 0 if the
// system does not report it. On Linux it is VmHWM. The figure of getrusage survives exec there:
// a small program that was started by a large one would report the figure of the large one.
func PeakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ownPeak()
	}
	if kib := procField(status, "VmHWM:"); kib != nil {
		return *kib << 10
	}
	return 0
}

// groupPeak returns the peak memory of the control group if this is the first process of its
// container. Otherwise it returns 0, because the group may be shared.
func groupPeak() int64 {
	if os.Getpid() != 1 {
		return 0
	}
	for _, name := range []string{"/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"} {
		if text, err := os.ReadFile(name); err == nil { //nolint:gosec // one of the two above
			if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil {
				return n
			}
		}
	}
	return 0
}

// procField returns the number after name in a file of /proc, or nil if it is absent.
func procField(text []byte, name string) *int64 {
	for line := range bytes.Lines(text) {
		if words := bytes.Fields(line); len(words) > 1 && string(words[0]) == name {
			if n, err := strconv.ParseInt(string(words[1]), 10, 64); err == nil {
				return &n
			}
		}
	}
	return nil
}
