//go:build unix

// Package wrap runs any program as a worker of Sortie. It implements sortie-exec and can
// be embedded in other programs. It makes the calls of the worker contract, masks the
// program's output, sends it while the program runs, and reports the exit.
package wrap

import (
	"cmp"
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

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/redact"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// quiet is a level above all records: the output of a job contains only the output of its
// program.
const quiet = slog.LevelError + 1

const (
	logTimeout      = 30 * time.Second // of the upload of the log
	standaloneGrace = 10 * time.Second
	maxTrace        = 16 << 10
)

// run runs sortie-exec, and returns its exit code.
func (process Process) run(args, environ []string) int {
	s, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(process.Stdout, help)
		return 0
	case err != nil:
		return process.fail("%v\nRun sortie-exec --help for the usage.", err)
	}
	level := &slog.LevelVar{}
	if level.Set(slog.LevelWarn); s.verbose {
		level.Set(slog.LevelInfo)
	}
	log := slog.New(slog.NewJSONHandler(process.Stderr, &slog.HandlerOptions{Level: level}))
	w := &wrapper{Process: process, settings: s, log: log, environ: environ, forward: make(chan os.Signal, 16), ended: make(chan struct{}), code: exitSelf, metrics: map[string]json.RawMessage{}, redactor: &redact.Redactor{}}
	terminated := w.route(process.Signals)
	a, err := worker.ReadAssignment(environ)
	switch {
	case errors.Is(err, worker.ErrNoTask) && s.standalone:
		return w.runStandalone(terminated)
	case errors.Is(err, worker.ErrNoTask):
		return w.fail("%v\nSortie sets one of them. Use --standalone to run CMD without a task.", err)
	case err != nil:
		return w.fail("%v", err)
	}
	w.redactor = redact.New(limit.Issuer, secretsOf(a, environ)...).Naming(secretValues(a, environ)...)
	w.takeProgram(a)
	if w.successCodes != nil && !s.verbose {
		level.Set(quiet)
	}
	if s.output != "" && (a.Envelope == nil || a.Envelope.Output == nil) {
		return w.fail("--output needs a TASK_ENVELOPE with an output URL, and this task has none")
	}
	reported := make(chan error, 1)
	go func() {
		reported <- worker.Run(context.Background(), a, worker.Options{
			Log: log.With("task_id", a.TaskID), Terminated: terminated, SendsOutput: s.sendsOutput(), ResultTimeout: s.within,
		}, w.work)
	}()
	select {
	case err = <-reported:
	case <-w.orphanEnded():
		return w.code
	}
	switch {
	case err != nil && w.program == nil && errors.Is(err, worker.ErrTerminated):
		return worker.ExitTerminated
	case err != nil && w.program == nil && w.code == exitSelf:
		return w.fail("%v", err)
	case errors.Is(err, worker.ErrUndelivered) && w.successCodes != nil:
		return w.code // the exit code of a job's program decides without a report
	case errors.Is(err, worker.ErrUndelivered), err != nil && w.code == 0, aborted(err):
		return exitSelf
	}
	return w.code
}

// orphanEnded returns a channel that is closed when the program has ended and Orphaned is
// closed, so that a report is not needed. It is never closed for a program with an output file.
func (w *wrapper) orphanEnded() <-chan struct{} {
	ended := make(chan struct{})
	if w.Orphaned == nil || w.settings.output != "" {
		return ended
	}
	go func() {
		<-w.ended
		<-w.Orphaned
		close(ended)
	}()
	return ended
}

// takeProgram applies the settings of the task's program that no flag sets.
func (w *wrapper) takeProgram(a worker.Assignment) {
	if a.Envelope == nil || a.Envelope.Program == nil {
		return
	}
	p := a.Envelope.Program
	w.successCodes = append([]int{}, p.SuccessCodes...)
	if p.Output != nil && w.settings.output == "" {
		w.settings.output, w.fileName, w.outputOfTask = p.Output.Path, p.Output.FileName, true
		w.settings.contentType = cmp.Or(p.Output.ContentType, w.settings.contentType)
	}
}

// succeeds reports whether an exit code means success.
func (w *wrapper) succeeds(code int) bool {
	if w.successCodes != nil {
		return slices.Contains(w.successCodes, code)
	}
	return code == 0
}

// aborted reports whether the control plane no longer accepts reports.
func aborted(err error) bool {
	return errors.Is(err, worker.ErrExpired) || errors.Is(err, worker.ErrMismatch)
}

// fail prints an error of sortie-exec and returns its exit code.
func (process Process) fail(format string, args ...any) int {
	fmt.Fprintf(process.Stderr, "sortie-exec: "+format+"\n", args...)
	return exitSelf
}

// wrapper is one run of a program.
type wrapper struct {
	Process
	settings settings
	log      *slog.Logger
	environ  []string
	forward  chan os.Signal
	redactor *redact.Redactor
	program  *program
	code     int
	ended    chan struct{} // closed when the program has ended
	// successCodes are the success codes of a job's program; nil without one. fileName is the
	// name of its output; empty means the name of the file.
	successCodes []int
	fileName     string
	// outputOfTask means that the path of the output comes from the task, and not from a flag.
	outputOfTask bool

	mu      sync.Mutex // guards the fields that the progress lines set
	percent int
	message string
	rows    *int64
	partial json.RawMessage
	metrics map[string]json.RawMessage
	failure *contract.TaskError
}

// route closes the returned channel at the first SIGTERM or SIGINT, forwards the second as
// SIGKILL, and forwards every other signal.
func (w *wrapper) route(signals <-chan os.Signal) <-chan struct{} {
	terminated := make(chan struct{})
	stopping := false
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				if !stopping {
					stopping = true
					close(terminated)
					continue
				}
				s = syscall.SIGKILL
			}
			w.forward <- s
		}
	}()
	return terminated
}

// runStandalone runs the program without a task.
func (w *wrapper) runStandalone(terminated <-chan struct{}) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-terminated; cancel() }()
	p, err := w.start(w.settings.command, w.environ, streams{progress: func(r io.Reader) { _, _ = io.Copy(io.Discard, r) }})
	if err != nil {
		w.fail("%v", err)
		return exitOf(err)
	}
	return p.wait(ctx, w.forward, func() time.Duration {
		if w.settings.killAfter > 0 {
			return w.settings.killAfter
		}
		return standaloneGrace
	}).code
}

// work runs the program as the work of a task.
func (w *wrapper) work(ctx context.Context, t *worker.Task) (worker.Result, error) {
	w.percent = -1
	to := streams{progress: func(r io.Reader) { readNotes(r, func(n note) { w.apply(t, n) }) }}
	log, stderr := newCapture(w.settings.logLimit), newCapture(maxTrace)
	if !w.settings.noLog {
		to.stdout = w.redactor.Writer(io.MultiWriter(log, t.Stdout(), lenient{w.Stdout}))
		to.stderr = w.redactor.Writer(io.MultiWriter(log, stderr, t.Stderr(), lenient{w.Stderr}))
	}
	input, err := t.Input(ctx)
	if err != nil {
		return worker.Result{}, err
	}
	to.stdin = input
	env := w.environment(t)
	if file := w.inputsFile(); file != "" {
		defer func() { _ = os.Remove(file) }()
		env = append(env, contract.InputsFileVariable+"="+file)
	}
	file, err := w.upstreamFile(ctx, t)
	if err != nil {
		return worker.Result{}, err
	}
	if file != "" {
		defer func() { _ = os.Remove(file) }()
		env = append(env, contract.UpstreamFileVariable+"="+file)
	}
	p, err := w.start(w.settings.command, env, to)
	if err != nil {
		w.code = exitOf(err)
		w.fail("%v", err)
		fmt.Fprintf(t.Stderr(), "sortie-exec: %v\n", err)
		return worker.Result{Exit: &contract.Exit{Code: w.code}}, worker.Fail(contract.CategoryConfiguration, false, fmt.Errorf("cannot run the program: %w", err))
	}
	w.program = p
	e := p.wait(ctx, w.forward, func() time.Duration {
		grace := t.Grace() / 4 * 3
		if w.settings.killAfter > 0 {
			grace = min(grace, w.settings.killAfter)
		}
		return grace
	})
	w.code = e.code
	close(w.ended)
	if cause := context.Cause(ctx); !aborted(cause) && t.FlushOutput(ctx) != nil {
		w.uploadLog(ctx, t, log)
	}
	return w.result(ctx, t, e, stderr.String())
}

// result converts the end of the program to a result. A stopped program has not succeeded, even
// with exit code 0.
func (w *wrapper) result(ctx context.Context, t *worker.Task, e end, stderr string) (worker.Result, error) {
	w.mu.Lock()
	r := worker.Result{Metrics: w.metrics, Output: w.describedOutput(), Exit: &contract.Exit{Code: e.code, Signal: int(e.signal)}}
	if w.partial != nil {
		r.PartialProgress = w.partial
	}
	reported := w.failure
	w.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case w.succeeds(e.code) && w.settings.output != "":
		return r, w.uploadOutput(ctx, t)
	case w.succeeds(e.code):
		return r, nil
	}
	f := &worker.Failure{Category: w.settings.rules.categoryOf(e), Retryable: w.settings.rules.retryableOf(e), StackTrace: stderr}
	message := e.String()
	if last := lastLine(stderr); last != "" {
		message += ": " + last
	}
	if reported != nil {
		if slices.Contains(contract.Categories(), reported.Category) {
			f.Category = reported.Category
		}
		if reported.Message != "" {
			message = reported.Message
		}
		if reported.StackTrace != "" {
			f.StackTrace = reported.StackTrace
		}
		if reported.Retryable != nil && f.Retryable == nil {
			f.Retryable = reported.Retryable
		}
	}
	f.Err = errors.New(message)
	return r, f
}

// describedOutput returns the known properties of the output before it is stored, or nil if
// none is known.
func (w *wrapper) describedOutput() *contract.TaskOutput {
	if w.rows == nil && w.settings.output == "" {
		return nil
	}
	o := &contract.TaskOutput{RowCount: w.rows}
	if w.settings.output != "" {
		o.FileName = cmp.Or(w.fileName, filepath.Base(w.settings.output))
	}
	return o
}

// apply stores the members of a progress line.
func (w *wrapper) apply(t *worker.Task, n note) {
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

// environment returns the environment of the program: the wrapper's without the task's secrets.
func (w *wrapper) environment(t *worker.Task) []string {
	env := []string{"SORTIE_TASK_ID=" + t.ID()}
	e, ok := t.Envelope()
	if ok {
		env = append(env, "SORTIE_ATTEMPT="+strconv.Itoa(e.Attempt))
	}
	if e.TraceParent != "" {
		env = append(env, contract.TraceParentVariable+"="+e.TraceParent)
	}
	for _, entry := range w.environ {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case contract.EnvelopeVariable, contract.CompletionVariable, "CALLBACK_URL":
		case contract.TraceParentVariable:
			if e.TraceParent == "" {
				env = append(env, entry)
			}
		default:
			env = append(env, entry)
		}
	}
	if w.settings.output != "" {
		env = append(env, "SORTIE_OUTPUT="+w.settings.output)
	}
	return env
}

// lenient ignores the errors of a writer, so that a closed standard output does not
// end the program.
type lenient struct{ to io.Writer }

func (l lenient) Write(b []byte) (int, error) { _, _ = l.to.Write(b); return len(b), nil }
