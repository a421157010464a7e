package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/source"
	"github.com/sortie-dev/sortie/shared/base/clock"
	sdk "github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Uploader stores an output in the bucket.
type Uploader interface {
	// Upload stores size bytes of body under key. It may read parts of body concurrently and
	// repeatedly and holds a few of them in memory. It retries. If it returns an error,
	// including that of ctx, the bucket has no part of the upload.
	Upload(ctx context.Context, key string, body io.ReaderAt, size int64, contentType string) error
}

// Ports are the dependencies of the worker. All are required except TempDir,
// Terminated, and Outputs if the envelope has an output URL.
type Ports struct {
	HTTP    *http.Client // for the source and the callback
	Outputs Uploader
	Clock   clock.Clock
	// Jitter returns numbers in [0, 1). It must be safe for concurrent use.
	Jitter func() float64
	// Terminated is closed when the process is signalled to stop. It may be nil.
	Terminated <-chan struct{}
	// PeakMemory returns the largest resident set so far, in bytes; 0 if unknown.
	PeakMemory func() int64
	Log        *slog.Logger
	// TempDir is the folder of the unnamed temporary files; empty selects the
	// system's.
	TempDir string
}

// work is one run of the worker.
type work struct {
	config Config
	ports  Ports
	log    *slog.Logger
}

// callbackTimeout limits the retries of the callback, which has no deadline.
const callbackTimeout = 10 * time.Minute

// Run exports, uploads and reports. It reports by the worker contract if there is a
// TASK_ENVELOPE, otherwise with one callback. It returns nil if the output is in the bucket,
// even if the report was not accepted. An error that wraps a cause of package shared/sdk/go/worker was
// not reported. Any other error was.
func Run(ctx context.Context, config Config, ports Ports) error {
	if config.Links == (formats.Links{}) {
		config.Links = formats.DefaultLinks()
	}
	return (&work{config: config, ports: ports, log: ports.Log}).run(ctx, func(ctx context.Context, w *work, t *sdk.Task) (sdk.Result, error) {
		w.log.InfoContext(ctx, "export started", "pi", config.PI.String(), "format", config.Format,
			"recursive", config.Options.Recursive, "max_depth", config.Options.MaxDepth)
		r, err := w.export(ctx, t)
		if err != nil && ctx.Err() == nil {
			w.log.ErrorContext(ctx, "export failed", "why", err.Error())
		}
		return r, err
	})
}

// ReportInvalid reports an invalid environment if the environment has the address for the
// report. It returns why, or the cause that prevented the report.
func ReportInvalid(ctx context.Context, config Config, ports Ports, why error) error {
	if config.Envelope == nil && (config.CallbackURL == "" || config.TaskID == "") {
		return why
	}
	return (&work{config: config, ports: ports, log: ports.Log}).run(ctx, func(context.Context, *work, *sdk.Task) (sdk.Result, error) {
		return sdk.Result{}, sdk.Fail(contract.CategoryConfiguration, false, fmt.Errorf("invalid environment of the worker: %w", why))
	})
}

// run calls do as the work of a task.
func (w *work) run(ctx context.Context, do func(context.Context, *work, *sdk.Task) (sdk.Result, error)) error {
	t, err := sdk.Start(ctx, w.config.assignment(), sdk.Options{
		HTTP: w.ports.HTTP, Clock: w.ports.Clock, Jitter: w.ports.Jitter, Log: w.log,
		Terminated: w.ports.Terminated, ReportTimeout: callbackTimeout,
	})
	if err != nil {
		w.log.WarnContext(ctx, "cannot start", "why", err.Error())
		return err
	}
	defer t.Close()
	result, failure := do(t.Context(), w, t)
	_, err = t.Complete(context.WithoutCancel(ctx), result, failure)
	switch {
	case err == nil:
	case !errors.Is(err, sdk.ErrUndelivered):
		w.log.WarnContext(ctx, "export stopped", "why", err.Error())
		return err
	case failure == nil:
		w.log.ErrorContext(ctx, "the output is stored, but the report was not accepted", "why", err.Error())
	default:
		w.log.ErrorContext(ctx, "the failure was not reported", "why", err.Error())
	}
	return failure
}

// export writes the document to a file and the file to the bucket.
func (w *work) export(ctx context.Context, t *sdk.Task) (sdk.Result, error) {
	begun := w.ports.Clock.Now()
	file, err := source.Unnamed(w.ports.TempDir)
	if err != nil {
		return sdk.Result{}, onDisk(err)
	}
	defer func() { _ = file.Close() }()
	c := w.config
	x := &export{
		config: c, dir: w.ports.TempDir, clock: w.ports.Clock, log: w.log, report: t.Progress,
		format: formatTable()[c.Format](formats.Options{
			Collection: c.Options.Recursive, OCR: c.Options.IncludeOCR, Graph: c.Options.CheimarrosMode, Links: c.Links,
		}),
	}
	from := source.New(c.SourceURL, w.ports.HTTP, w.ports.Clock, w.ports.Jitter, w.log, c.Limits)
	t.Phase("reading")
	if err := x.write(ctx, from, file); err != nil {
		return sdk.Result{PartialProgress: map[string]int{"entitiesExported": x.counts.exported}}, categorize(err)
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return sdk.Result{}, onDisk(fmt.Errorf("cannot read back the document: %w", withoutPath(err)))
	}
	w.log.InfoContext(ctx, "document written", "entities", x.counts.exported, "bytes", size)
	t.Phase("uploading")
	output, err := w.upload(ctx, t, file, size)
	if err != nil {
		return sdk.Result{}, err
	}
	const mib = 1 << 20
	metrics := Metrics{
		TotalTimeMS:      w.ports.Clock.Now().Sub(begun).Milliseconds(),
		EntitiesExported: x.counts.exported, EntitiesFailed: x.counts.failed, EntitiesIncomplete: x.counts.incomplete,
		PeakMemoryMB: (w.ports.PeakMemory() + mib - 1) / mib,
	}
	w.log.InfoContext(ctx, "export done", "key", output.OutputPath, "bytes", size, "metrics", metrics)
	if c.Envelope != nil {
		return sdk.Result{Output: output, Metrics: taskMetrics(metrics)}, nil
	}
	return sdk.Result{Output: output, Metrics: metrics}, nil
}

// upload stores the document: under the key of the export contract if there are credentials,
// otherwise at the envelope's URL.
func (w *work) upload(ctx context.Context, t *sdk.Task, file io.ReaderAt, size int64) (*contract.TaskOutput, error) {
	const contentType = "application/xml"
	c := w.config
	output := &contract.TaskOutput{FileName: c.FileName(), ByteSize: &size}
	if w.ports.Outputs == nil {
		output.OutputPath = c.Envelope.Output.Key
		return output, t.UploadOutput(ctx, file, size, contentType)
	}
	output.OutputPath = c.Key()
	var err error
	if output.Digest, err = sdk.Digest(file, size); err != nil {
		return nil, err
	}
	if err := w.ports.Outputs.Upload(ctx, c.Key(), file, size, contentType); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		w.log.ErrorContext(ctx, "upload failed", "key", c.Key(), "why", err.Error())
		return nil, sdk.Fail(contract.CategoryInfrastructure, true,
			fmt.Errorf("Failed to upload %s to the bucket %s", c.Key(), c.Bucket.Bucket)) //nolint:staticcheck // the contract's errors begin with a capital
	}
	return output, nil
}

// categorize returns a failure with its category. An unavailable source may recover. Any other
// response does not change.
func categorize(err error) error {
	switch source.KindOf(err) {
	case source.Unavailable:
		return sdk.Fail(contract.CategoryInfrastructure, true, err)
	case source.Absent, source.Refused, source.Garbled, source.Corrupt, source.TooLarge:
		return sdk.Fail(contract.CategoryDataQuality, false, err)
	}
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return onDisk(err)
	}
	return err
}

// onDisk returns a failure of the machine's disk.
func onDisk(err error) error {
	return sdk.Fail(contract.CategoryInfrastructure, true, withoutPath(err))
}

// withoutPath removes the name of a temporary file from an error.
func withoutPath(err error) error {
	if wrapped, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("temporary file: %w", wrapped.Err)
	}
	return err
}
