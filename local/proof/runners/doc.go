//go:build unix

// Package runners runs the same job files on every runner, with "sortie run" and a whole
// stack for each runner, and compares how they end: the state, the fault, the attempts, the
// end of the program, the streams of the command, the log, and the command's exit code. It
// then looks at the platform, which must have nothing left of the run.
//
// The job files are in jobs; Cases has the end of each, which is the same for all runners. A
// runner that differs declares each difference by the name of the job, with the reason.
//
// The runners process and fly are part of "make test", container of "make test-containers",
// and kubernetes of "make test-kubernetes".
package runners
