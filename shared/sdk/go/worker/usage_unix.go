//go:build unix

package worker

import (
	"runtime"
	"syscall"
)

// cpuTime returns the processor time of this process and of the children that it
// has waited for, in milliseconds.
func cpuTime() *int64 {
	var total int64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) != nil {
			return nil
		}
		total += u.Utime.Nano() + u.Stime.Nano()
	}
	total /= 1_000_000
	return &total
}

func ownPeak() int64 { return peak(syscall.RUSAGE_SELF) }

func childPeak() int64 { return peak(syscall.RUSAGE_CHILDREN) }

// peak returns ru_maxrss in bytes. Darwin reports bytes, other systems kilobytes.
func peak(who int) int64 {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return u.Maxrss
	}
	return u.Maxrss << 10
}
