//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/worker"
)

// Limits of what is done after the program's end.
const (
	logPatience     = 30 * time.Second
	standaloneGrace = 10 * time.Second
	maxTrace        = 16 << 10
)

// wrap is the whole of sortie-exec; it gives the exit code.
func wrap(args, environ []string, signals <-chan os.Signal) int {
	s, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(help) //nolint:forbidigo // help that was asked for is the output
		return 0
	case err != nil:
		return refuse("%v\nsortie-exec --help tells how it is used.", err)
	}
	level := slog.LevelWarn
	if s.verbose {
		level = slog.LevelInfo
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	w := &wrapper{settings: s, log: log, environ: environ, signals: make(chan os.Signal, 16), code: exitSelf, metrics: map[string]json.RawMessage{}}
	terminated := w.sort(signals)
	a, err := worker.ReadAssignment(environ)
	switch {
	case errors.Is(err, worker.ErrNoTask) && s.standalone:
		return w.alone(terminated)
	case errors.Is(err, worker.ErrNoTask):
		return refuse("%v\nSortie sets one of them. To run CMD without a task, say --standalone.", err)
	case err != nil:
		return refuse("%v", err)
	}
	if s.output != "" && (a.Envelope == nil || a.Envelope.Output == nil) {
		return refuse("--output needs a TASK_ENVELOPE with an address for the output, and this task has none")
	}
	err = worker.Run(context.Background(), a, worker.Options{Log: log.With("task_id", a.TaskID), Terminated: terminated}, w.work)
	switch {
	case err != nil && w.program == nil && errors.Is(err, worker.ErrTerminated):
		return worker.ExitTerminated
	case err != nil && w.program == nil && w.code == exitSelf:
		return refuse("%v", err)
	case errors.Is(err, worker.ErrUndelivered), err != nil && w.code == 0, aborted(err):
		return exitSelf
	}
	return w.code
}

func aborted(err error) bool {
	return errors.Is(err, worker.ErrExpired) || errors.Is(err, worker.ErrMismatch)
}

func refuse(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "sortie-exec: "+format+"\n", args...)
	return exitSelf
}

// wrapper is one run of a program.
type wrapper struct {
	settings settings
	log      *slog.Logger
	environ  []string
	signals  chan os.Signal // to be passed on
	program  *program
	code     int

	mu      sync.Mutex // of what the notes say
	percent int
	message string
	rows    *int64
	partial json.RawMessage
	metrics map[string]json.RawMessage
	failure *contract.TaskError
}

// sort closes the channel at the first signal that asks to stop, makes SIGKILL
// of the next, and passes the others on.
func (w *wrapper) sort(signals <-chan os.Signal) <-chan struct{} {
	terminated := make(chan struct{})
	stop := sync.OnceValue(func() bool { close(terminated); return true })
	asked := false
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				stop()
				if !asked {
					asked = true
					continue
				}
				s = syscall.SIGKILL
			}
			w.signals <- s
		}
	}()
	return terminated
}

// alone runs the program without a task.
func (w *wrapper) alone(terminated <-chan struct{}) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-terminated; cancel() }()
	p, err := start(w.settings.command, w.environ, streams{notes: func(r io.Reader) { _, _ = io.Copy(io.Discard, r) }})
	if err != nil {
		refuse("%v", err)
		return exitOf(err)
	}
	return p.attend(ctx, w.signals, func() time.Duration {
		if w.settings.killAfter > 0 {
			return w.settings.killAfter
		}
		return standaloneGrace
	}).code
}

// work runs the program as the work of a task.
func (w *wrapper) work(ctx context.Context, t *worker.Task) (worker.Result, error) {
	w.percent = -1
	to := streams{notes: func(r io.Reader) { readNotes(r, func(n note) { w.take(t, n) }) }}
	log, complaint := newCapture(w.settings.logLimit), newCapture(maxTrace)
	if !w.settings.noLog {
		to.stdout = io.MultiWriter(log, passing{os.Stdout})
		to.stderr = io.MultiWriter(log, complaint, passing{os.Stderr})
	}
	p, err := start(w.settings.command, w.environment(t), to)
	if err != nil {
		w.code = exitOf(err)
		refuse("%v", err)
		return worker.Result{}, worker.Fail(contract.CategoryConfiguration, false, fmt.Errorf("cannot run the program: %w", err))
	}
	w.program = p
	e := p.attend(ctx, w.signals, func() time.Duration {
		grace := t.Grace() / 4 * 3
		if w.settings.killAfter > 0 {
			grace = min(grace, w.settings.killAfter)
		}
		return grace
	})
	w.code = e.code
	if cause := context.Cause(ctx); !aborted(cause) {
		w.uploadLog(ctx, t, log)
	}
	return w.result(ctx, t, e, complaint.String())
}

// result is what the program's end means. A program that was told to stop did
// not succeed, whatever it says.
func (w *wrapper) result(ctx context.Context, t *worker.Task, e end, complaint string) (worker.Result, error) {
	w.mu.Lock()
	r := worker.Result{Metrics: w.metrics, Output: w.outcome()}
	if w.partial != nil {
		r.PartialProgress = w.partial
	}
	said := w.failure
	w.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case e.code == 0 && w.settings.output != "":
		return r, w.uploadOutput(ctx, t)
	case e.code == 0:
		return r, nil
	}
	f := &worker.Failure{Category: w.settings.rules.of(e), Retryable: w.settings.rules.retry(e), StackTrace: complaint}
	message := e.String()
	if last := lastLine(complaint); last != "" {
		message += ": " + last
	}
	if said != nil {
		if slices.Contains(contract.Categories(), said.Category) {
			f.Category = said.Category
		}
		if said.Message != "" {
			message = said.Message
		}
		if said.StackTrace != "" {
			f.StackTrace = said.StackTrace
		}
		if said.Retryable != nil && f.Retryable == nil {
			f.Retryable = said.Retryable
		}
	}
	f.Err = errors.New(message)
	return r, f
}

// outcome is what is known of the output before it is stored; nil for nothing.
func (w *wrapper) outcome() *contract.TaskOutput {
	if w.rows == nil && w.settings.output == "" {
		return nil
	}
	o := &contract.TaskOutput{RowCount: w.rows}
	if w.settings.output != "" {
		o.FileName = filepath.Base(w.settings.output)
	}
	return o
}

// take notes what a line says.
func (w *wrapper) take(t *worker.Task, n note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.ProgressPct != nil {
		w.percent = int(max(-1, min(*n.ProgressPct, 100)))
	}
	if n.Message != nil {
		w.message = *n.Message
	}
	t.Progress(w.percent, w.message)
	if n.Phase != "" {
		t.Phase(n.Phase)
	}
	if n.RowCount != nil {
		w.rows = n.RowCount
	}
	if n.PartialProgress != nil {
		w.partial = n.PartialProgress
	}
	if n.Error != nil {
		w.failure = n.Error
	}
	var figures map[string]json.RawMessage
	if json.Unmarshal(n.Metrics, &figures) == nil {
		maps.Copy(w.metrics, figures)
	}
}

// environment is the program's: the wrapper's without the secrets of the
// conversation.
func (w *wrapper) environment(t *worker.Task) []string {
	var env []string
	for _, entry := range w.environ {
		if !strings.HasPrefix(entry, contract.EnvelopeVariable+"=") && !strings.HasPrefix(entry, "CALLBACK_URL=") {
			env = append(env, entry)
		}
	}
	env = append(env, "SORTIE_TASK_ID="+t.ID())
	if e, ok := t.Envelope(); ok {
		env = append(env, "SORTIE_ATTEMPT="+strconv.Itoa(e.Attempt))
	}
	if w.settings.output != "" {
		env = append(env, "SORTIE_OUTPUT="+w.settings.output)
	}
	return env
}

// passing writes through and never fails: a reader that has gone does not end
// the program.
type passing struct{ to io.Writer }

func (p passing) Write(b []byte) (int, error) { _, _ = p.to.Write(b); return len(b), nil }
