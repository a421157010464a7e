//go:build unix

// Sortie-exec wraps any program in the worker contract: it says started, sends
// heartbeats with the progress that the program tells, ends the program when the
// task is cancelled, uploads its output and its log, and says completed with
// what its exit meant.
//
//	sortie-exec [flags] CMD ARG...
//
// "sortie-exec --help" has the flags and the exit codes. It is one static file,
// may be a container's first process, and needs certificates in the image
// (/etc/ssl/certs) where the control plane is https.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	// A closed standard output must not end the wrapper; ignoring the signal would
	// be inherited by the program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(wrap(os.Args[1:], os.Environ(), signals))
}
