package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// The exit codes of Main.
const (
	// ExitDone: the work succeeded, and the control plane knows.
	ExitDone = 0
	// ExitFailed: it did not, or the control plane does not know.
	ExitFailed = 1
	// ExitNoTask: the environment has no task, or not a valid one.
	ExitNoTask = 2
	// ExitTerminated: the process was asked to stop.
	ExitTerminated = 128 + int(syscall.SIGTERM)
)

// Main is a whole worker: it reads the environment, does the task, logs JSON
// lines to stderr and gives the exit code. SIGTERM and SIGINT end the work's
// context; a second one ends the process.
func Main(work Func) int {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	a, err := ReadAssignment(os.Environ())
	if err != nil {
		log.Error("there is nothing to do", "why", err.Error())
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

// Terminated gives a channel for Options that is closed by the first SIGTERM or
// SIGINT; the second one ends the process, unless stop was called before.
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

// hostClock is the host's clock.
type hostClock struct{}

func (hostClock) Now() time.Time { return time.Now() }

func (hostClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
