//go:build !unix

package worker

func cpuTime() *int64 { return nil }

func ownPeak() int64 { return 0 }

func childPeak() int64 { return 0 }
