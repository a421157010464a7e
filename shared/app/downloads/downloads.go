// Package downloads serves the accepted outputs of tasks to clients.
package downloads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Runs are the runs with outputs. All methods are safe for concurrent use.
type Runs interface {
	// Now returns the time.
	Now() time.Time
	// Find returns a task of the caller's tenant. Fault: NotFound.
	Find(ctx context.Context, who port.Identity, taskID string) (run.Run, error)
	// Expire commits that the output of a run expires. It returns the newest record.
	Expire(ctx context.Context, r run.Run, f run.OutputExpiring) (run.Run, error)
	// DeleteExpired deletes the expired objects of a run.
	DeleteExpired(ctx context.Context, ref run.Ref) error
	// Warn logs an error with the ids of a run.
	Warn(ctx context.Context, r run.Run, message string, err error)
}

// Config configures downloads.
type Config struct {
	// RedirectOver is the size in bytes above which a download is redirected to the bucket; 0
	// never redirects. PresignFor is the life of such a URL.
	RedirectOver int64
	PresignFor   time.Duration
	// Retention is the retention of an output after its last byte was sent.
	Retention time.Duration
}

// Downloads serves the outputs of tasks to clients.
type Downloads struct {
	runs    Runs
	outputs port.Outputs
	config  Config
}

// New returns the downloads of runs whose outputs are in an object store.
func New(runs Runs, outputs port.Outputs, config Config) *Downloads {
	return &Downloads{runs, outputs, config}
}

// Downloadable is a task with an output that can be read now.
type Downloadable struct {
	Run    run.Run
	Output run.Output
	// By is the caller.
	By run.Actor
	// ContentType is the type for the run's kind and format, not the type of the worker's
	// upload. Disposition is the Content-Disposition: an attachment with the worker's file
	// name, made safe.
	ContentType, Disposition string
	// RedirectTo is a presigned URL if the output is too large to be served here;
	// empty otherwise. It is a secret.
	RedirectTo string
}

// Output finds the output of a task. Faults: NotFound for an unknown task and for
// a success without an output, NotReady before the end, after a failure and after a skip,
// OutputExpired after its retention, OutputDeleted after its deletion.
func (s *Downloads) Output(ctx context.Context, who port.Identity, taskID string) (Downloadable, error) {
	r, err := s.runs.Find(ctx, who, taskID)
	if err != nil {
		return Downloadable{}, err
	}
	if !r.ServesOutput() {
		refused := fault.New(fault.NotReady, "Export not ready or failed")
		switch {
		case r.Skipped:
			refused.Message = "the run was skipped and has no output"
		case r.Work.Kind != spec.KindExport:
			refused.Message = "the run has not ended, or failed"
		}
		refused.Retryable = !r.State.Terminal()
		return Downloadable{}, refused
	}
	if r.Output == nil {
		return Downloadable{}, fault.New(fault.NotFound, "File not found in R2: the worker left no output")
	}
	if at := r.Output.DeleteRequestedAt; !at.IsZero() {
		return Downloadable{}, fault.New(fault.OutputDeleted, "the output was deleted on request at %s; export again", at.Format(time.RFC3339))
	}
	if r.Output.Expired(s.runs.Now()) {
		return Downloadable{}, fault.New(fault.OutputExpired, "the output expired at %s; export again", r.Output.ExpiresAt.Format(time.RFC3339))
	}
	d := Downloadable{
		Run: r, Output: *r.Output, By: who.Actor(),
		ContentType: r.Work.ContentType(), Disposition: disposition(r.Output.FileName, r.TaskID),
	}
	if s.config.RedirectOver > 0 && r.Output.Size > s.config.RedirectOver {
		d.RedirectTo, err = s.outputs.PresignGet(ctx, r.Output.Key, d.Disposition, d.ContentType, s.config.PresignFor)
		if err != nil {
			return Downloadable{}, fmt.Errorf("cannot sign the output's URL: %w", err)
		}
	}
	return d, nil
}

// Open reads a part of the output. The caller closes it. Fault: NotFound if the object is gone.
func (s *Downloads) Open(ctx context.Context, d Downloadable, span port.Span) (io.ReadCloser, error) {
	body, _, err := s.outputs.Open(ctx, port.Accepted, d.Output.Key, span)
	if errors.Is(err, port.ErrNotFound) {
		return nil, fault.New(fault.NotFound, "File not found in R2")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the output: %w", err)
	}
	return body, nil
}

// Downloaded records that the output's last byte was sent: it expires after the
// download retention, if that is sooner.
func (s *Downloads) Downloaded(ctx context.Context, d Downloadable) error {
	_, err := s.runs.Expire(ctx, d.Run, run.OutputExpiring{
		At: s.runs.Now().Add(s.config.Retention), Message: "downloaded", By: d.By,
	})
	return err
}

// DeleteOutput expires the output now. Once it returns, the output is no longer served. It returns
// nil for an expired or deleted output. Faults as for Output, without OutputExpired and
// OutputDeleted.
func (s *Downloads) DeleteOutput(ctx context.Context, who port.Identity, taskID string) error {
	d, err := s.Output(ctx, who, taskID)
	if fault.Is(err, fault.OutputExpired) || fault.Is(err, fault.OutputDeleted) {
		return nil
	}
	if err != nil {
		return err
	}
	r, err := s.runs.Expire(ctx, d.Run, run.OutputExpiring{At: s.runs.Now(), Deleted: true, Message: "deleted on request", By: d.By})
	if err != nil {
		return fmt.Errorf("cannot expire the output: %w", err)
	}
	if err := s.runs.DeleteExpired(ctx, r.Ref()); err != nil {
		s.runs.Warn(ctx, r, "the output's object is not deleted yet; the sweep retries", err)
	}
	return nil
}
