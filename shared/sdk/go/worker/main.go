package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// The exit codes of Main.
const (
	// ExitDone means that the work succeeded and the control plane accepted the
	// report.
	ExitDone = 0
	// ExitFailed means that the work failed, or that the report was not accepted.
	ExitFailed = 1
	// ExitNoTask means that the environment has no task, or an invalid one.
	ExitNoTask = 2
	// ExitTerminated means that the process was signalled to stop.
	ExitTerminated = 128 + int(syscall.SIGTERM)
)

// Main runs a whole worker: it reads the environment, does the task, logs JSON lines to
// standard error and returns the exit code. The first SIGTERM or SIGINT ends the context of the
// work. The second ends the process.
func Main(work Func) int {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	a, err := ReadAssignment(os.Environ())
	if err != nil {
		log.Error("cannot read the task", "why", err.Error())
		return ExitNoTask
	}
	terminated, stop := Terminated()
	defer stop()
	err = Run(context.Background(), a, Options{Log: log.With("task_id", a.TaskID), Terminated: terminated}, work)
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, ErrTerminated):
		return ExitTerminated
	}
	return ExitFailed
}

// Terminated returns a channel for Options.Terminated. The first SIGTERM or
// SIGINT closes it. The second has its default effect and ends the process. stop
// restores the default effect of both signals and releases the channel; it may be
// called more than once.
func Terminated() (closed <-chan struct{}, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	done, c := make(chan struct{}), make(chan struct{})
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			close(c)
		case <-done:
			signal.Stop(signals)
		}
	}()
	return c, sync.OnceFunc(func() { close(done) })
}
