package worker

import "syscall"

// PeakMemory is the largest resident set of this process so far, in bytes; 0
// where it cannot be told. Darwin counts ru_maxrss in bytes.
func PeakMemory() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Maxrss
}
