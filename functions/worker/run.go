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
	"github.com/sortie-dev/sortie/shared/contract"
	sdk "github.com/sortie-dev/sortie/shared/worker"
)

// Uploader puts an output into the bucket.
type Uploader interface {
	// Upload stores size bytes of body under key. It may read parts of body at
	// once and again; it holds no more than a few of them in memory. When it
	// returns an error, also the context's, nothing of the upload is left in
	// the bucket; it does its own retries.
	Upload(ctx context.Context, key string, body io.ReaderAt, size int64, contentType string) error
}

// Ports are what the worker needs from the world. All are required but
// TempDir, Terminated, and Outputs where the envelope has an address.
type Ports struct {
	HTTP    *http.Client // for the source and the callback
	Outputs Uploader
	Clock   source.Clock
	// Jitter gives numbers from 0 up to 1. It may be called from anywhere at
	// once.
	Jitter func() float64
	// Terminated is closed when the process is asked to stop; may be nil.
	Terminated <-chan struct{}
	// PeakMemory is the largest resident set so far, in bytes; 0 where unknown.
	PeakMemory func() int64
	Log        *slog.Logger
	// TempDir is where temporary files lie, without names; empty is the
	// system's.
	TempDir string
}

// work is one run of the worker.
type work struct {
	config Config
	ports  Ports
	log    *slog.Logger
}

// callbackTimeout bounds the retries of the callback, which has no deadline.
const callbackTimeout = 10 * time.Minute

// Run exports, uploads and reports, by the worker contract where there is a
// TASK_ENVELOPE and with one callback where there is not. It returns nil when
// the output is in the bucket, whether or not the report was accepted; what
// ended the work, where that is not to be reported: then the machine's end says
// enough; any other error was reported, in its own words.
func Run(ctx context.Context, config Config, ports Ports) error {
	if config.Links == (formats.Links{}) {
		config.Links = formats.DefaultLinks()
	}
	return (&work{config: config, ports: ports, log: ports.Log}).run(ctx, func(ctx context.Context, w *work, t *sdk.Task) (sdk.Result, error) {
		w.log.InfoContext(ctx, "export begins", "pi", config.PI.String(), "format", config.Format,
			"recursive", config.Options.Recursive, "max_depth", config.Options.MaxDepth)
		r, err := w.export(ctx, t)
		if err != nil && ctx.Err() == nil {
			w.log.ErrorContext(ctx, "export failed", "why", err.Error())
		}
		return r, err
	})
}

// ReportInvalid tells that the worker cannot begin, if it could read whom to
// tell.
func ReportInvalid(ctx context.Context, config Config, ports Ports, why error) error {
	if config.Envelope == nil && (config.CallbackURL == "" || config.TaskID == "") {
		return why
	}
	return (&work{config: config, ports: ports, log: ports.Log}).run(ctx, func(context.Context, *work, *sdk.Task) (sdk.Result, error) {
		return sdk.Result{}, sdk.Fail(contract.CategoryConfiguration, false, fmt.Errorf("the worker's environment is not valid: %w", why))
	})
}

// run does what is to be done as a task.
func (w *work) run(ctx context.Context, do func(context.Context, *work, *sdk.Task) (sdk.Result, error)) error {
	t, err := sdk.Start(ctx, w.config.assignment(), sdk.Options{
		HTTP: w.ports.HTTP, Clock: w.ports.Clock, Jitter: w.ports.Jitter, Log: w.log,
		Terminated: w.ports.Terminated, ReportTimeout: callbackTimeout,
	})
	if err != nil {
		w.log.WarnContext(ctx, "there is nothing to do", "why", err.Error())
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
		w.log.ErrorContext(ctx, "the output is stored, but nobody knows", "why", err.Error())
	default:
		w.log.ErrorContext(ctx, "the failure could not be reported", "why", err.Error())
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
		config: c, dir: w.ports.TempDir, clock: w.ports.Clock, log: w.log, tell: t.Progress,
		format: formatTable()[c.Format](formats.Options{
			Collection: c.Options.Recursive, OCR: c.Options.IncludeOCR, Graph: c.Options.CheimarrosMode, Links: c.Links,
		}),
	}
	from := source.New(c.SourceURL, w.ports.HTTP, w.ports.Clock, w.ports.Jitter, w.log, c.Limits)
	t.Phase("reading")
	if err := x.write(ctx, from, file); err != nil {
		return sdk.Result{PartialProgress: map[string]int{"entitiesExported": x.counts.exported}}, blame(err)
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return sdk.Result{}, onDisk(fmt.Errorf("cannot read the document back: %w", withoutPath(err)))
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
	w.log.InfoContext(ctx, "export ends", "key", output.OutputPath, "bytes", size, "metrics", metrics)
	if c.Envelope != nil {
		return sdk.Result{Output: output, Metrics: taskMetrics(metrics)}, nil
	}
	return sdk.Result{Output: output, Metrics: metrics}, nil
}

// upload puts the document into the bucket: with credentials under the export
// contract's key, without them where the envelope says.
func (w *work) upload(ctx context.Context, t *sdk.Task, file io.ReaderAt, size int64) (*contract.TaskOutput, error) {
	const contentType = "application/xml"
	c := w.config
	output := &contract.TaskOutput{FileName: c.FileName(), ByteSize: &size}
	if w.ports.Outputs == nil {
		output.OutputPath = c.Envelope.Output.Key
		return output, t.UploadOutput(ctx, file, size, contentType)
	}
	output.OutputPath = c.Key()
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

// blame gives a failure its category: a source that is away may come back, what
// it says is not going to change.
func blame(err error) error {
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

// onDisk is a failure of the machine's disk.
func onDisk(err error) error {
	return sdk.Fail(contract.CategoryInfrastructure, true, withoutPath(err))
}

// withoutPath leaves out the name of a temporary file.
func withoutPath(err error) error {
	if wrapped, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("temporary file: %w", wrapped.Err)
	}
	return err
}
