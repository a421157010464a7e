package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/source"
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
// TempDir.
type Ports struct {
	HTTP    *http.Client // for the source and the callback
	Outputs Uploader
	Clock   source.Clock
	// Jitter gives numbers from 0 up to 1. It may be called from anywhere at
	// once.
	Jitter func() float64
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

// Run exports, uploads and calls back. It returns nil when the output is in
// the bucket, whether or not the callback was accepted, and the context's
// error when that ended first: then nothing was reported, and the machine's
// end says enough, since an error is final. Any other error was reported as
// status "error", in its own words.
func Run(ctx context.Context, config Config, ports Ports) error {
	if config.Links == (formats.Links{}) {
		config.Links = formats.DefaultLinks()
	}
	w := &work{config: config, ports: ports, log: ports.Log}
	w.log.InfoContext(ctx, "export begins", "pi", config.PI.String(), "format", config.Format,
		"recursive", config.Options.Recursive, "max_depth", config.Options.MaxDepth)
	done, err := w.export(ctx)
	if ctx.Err() != nil {
		w.log.WarnContext(ctx, "export stopped", "why", context.Cause(ctx).Error())
		return ctx.Err()
	}
	if err != nil {
		w.log.ErrorContext(ctx, "export failed", "why", err.Error())
		return w.reportFailure(ctx, err)
	}
	w.log.InfoContext(ctx, "export ends", "key", done.OutputR2Key, "bytes", done.OutputFileSize, "metrics", done.Metrics)
	return w.reportSuccess(ctx, done)
}

// ReportInvalid tells that the worker cannot begin, if CALLBACK_URL and
// TASK_ID could be read.
func ReportInvalid(ctx context.Context, config Config, ports Ports, why error) error {
	if config.CallbackURL == "" || config.TaskID == "" {
		return why
	}
	w := &work{config: config, ports: ports, log: ports.Log}
	return w.reportFailure(ctx, fmt.Errorf("the worker's environment is not valid: %w", why))
}

func (w *work) reportSuccess(ctx context.Context, done report) error {
	err := w.deliver(ctx, done)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.log.ErrorContext(ctx, "the output is stored, but nobody knows", "why", err.Error())
	}
	return nil
}

func (w *work) reportFailure(ctx context.Context, why error) error {
	err := w.deliver(ctx, report{TaskID: w.config.TaskID, BatchID: w.config.BatchID, Status: "error", Error: why.Error()})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.log.ErrorContext(ctx, "the failure could not be reported", "why", err.Error())
	}
	return why
}

// export writes the document to a file and the file to the bucket.
func (w *work) export(ctx context.Context) (report, error) {
	begun := w.ports.Clock.Now()
	file, err := source.Unnamed(w.ports.TempDir)
	if err != nil {
		return report{}, withoutPath(err)
	}
	defer func() { _ = file.Close() }()
	c := w.config
	x := &export{
		config: c, dir: w.ports.TempDir, clock: w.ports.Clock, log: w.log,
		format: formatTable()[c.Format](formats.Options{
			Collection: c.Options.Recursive, OCR: c.Options.IncludeOCR, Graph: c.Options.CheimarrosMode, Links: c.Links,
		}),
	}
	from := source.New(c.SourceURL, w.ports.HTTP, w.ports.Clock, w.ports.Jitter, w.log, c.Limits)
	if err := x.write(ctx, from, file); err != nil {
		return report{}, withoutPath(err)
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return report{}, fmt.Errorf("cannot read the document back: %w", withoutPath(err))
	}
	w.log.InfoContext(ctx, "document written", "entities", x.counts.exported, "bytes", size)
	if err := w.ports.Outputs.Upload(ctx, c.Key(), file, size, "application/xml"); err != nil {
		w.log.ErrorContext(ctx, "upload failed", "key", c.Key(), "why", err.Error())
		return report{}, fmt.Errorf("Failed to upload %s to the bucket %s", c.Key(), c.Bucket.Bucket) //nolint:staticcheck // the contract's errors begin with a capital
	}
	const mib = 1 << 20
	return report{
		TaskID: c.TaskID, BatchID: c.BatchID, Status: "success",
		OutputR2Key: c.Key(), OutputFileName: c.FileName(), OutputFileSize: size,
		Metrics: &Metrics{
			TotalTimeMS:      w.ports.Clock.Now().Sub(begun).Milliseconds(),
			EntitiesExported: x.counts.exported, EntitiesFailed: x.counts.failed, EntitiesIncomplete: x.counts.incomplete,
			PeakMemoryMB: (w.ports.PeakMemory() + mib - 1) / mib,
		},
	}, nil
}

// withoutPath leaves out the name of a temporary file.
func withoutPath(err error) error {
	if wrapped, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("temporary file: %w", wrapped.Err)
	}
	return err
}
