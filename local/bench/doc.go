// Package bench measures the whole local stack, and prints figures. It asserts
// nothing about time. It has benchmarks' worlds only: a runner whose machines
// are goroutines, and the measurements that make bench runs.
package bench
