package worker

import (
	"bytes"
	"os"
	"strconv"

	"github.com/sortie-dev/sortie/shared/contract"
)

// Usage reads the figures of this process and of those that it started and
// waited for. What the system does not tell is absent.
//
// CPU time is getrusage's. Peak memory is PeakMemory, or the largest of the
// processes that were waited for; in a container whose first process this is,
// the control group's peak. I/O counts what went through read and write calls
// (rchar and wchar of /proc/self/io), to files and to the network.
func Usage() contract.TaskMetrics {
	m := contract.TaskMetrics{CPUTimeMS: cpuTime()}
	if peak := max(PeakMemory(), childPeak(), groupPeak()); peak > 0 {
		m.PeakMemoryBytes = &peak
	}
	text, err := os.ReadFile("/proc/self/io")
	if err == nil {
		m.IOReadBytes, m.IOWriteBytes = field(text, "rchar:"), field(text, "wchar:")
	}
	return m
}

// PeakMemory is the largest resident set of this process so far, in bytes; 0
// where the system does not tell. On Linux it is VmHWM: getrusage's figure
// outlives exec there, so that a small program that was started by a large one
// would report the large one's.
func PeakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ownPeak()
	}
	if kib := field(status, "VmHWM:"); kib != nil {
		return *kib << 10
	}
	return 0
}

// groupPeak is the control group's, where this is the first process of its
// container; 0 elsewhere, where the group may be shared with others.
func groupPeak() int64 {
	if os.Getpid() != 1 {
		return 0
	}
	for _, name := range []string{"/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"} {
		if text, err := os.ReadFile(name); err == nil {
			if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil {
				return n
			}
		}
	}
	return 0
}

// field is the number after a name in a file of /proc; nil where there is none.
func field(text []byte, name string) *int64 {
	for line := range bytes.Lines(text) {
		if words := bytes.Fields(line); len(words) > 1 && string(words[0]) == name {
			if n, err := strconv.ParseInt(string(words[1]), 10, 64); err == nil {
				return &n
			}
		}
	}
	return nil
}
