//go:build !linux && !darwin

package worker

// PeakMemory is 0: this system is not asked.
func PeakMemory() int64 { return 0 }
