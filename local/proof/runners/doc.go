//go:build unix

// Package runners runs the same job files on every runner, with "sortie run" and a whole stack
// per runner, and compares the results: the state, the fault, the attempts, the exit of the
// program, the streams of the command, the log, and the command's exit code. It then checks
// that the platform has no resource of the run left.
//
// The job files are in jobs. Cases has their results, which are the same for all runners. A
// runner with different results declares each difference by job name, with the reason.
//
// The runners process and fly are part of "make test", container of "make test-containers",
// and kubernetes of "make test-kubernetes".
package runners
