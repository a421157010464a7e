package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Downloadable is a task whose output can be read now.
type Downloadable struct {
	Run    run.Run
	Output run.Output
	// RedirectTo is a presigned URL where the output is too large to be served
	// here; empty where it is not. It is a secret.
	RedirectTo string
}

// StatusOf is the run's status in the export contract's three words.
func StatusOf(r run.Run) string {
	switch {
	case !r.State.Terminal():
		return contract.StatusProcessing
	case r.State == run.Completed:
		return contract.StatusSuccess
	}
	return contract.StatusError
}

// Output finds the output of a task. Faults: NotFound for an unknown task, or
// a success without an output, NotReady while there is none or after a failure,
// OutputExpired once its time is over.
func (s *Service) Output(ctx context.Context, who port.Identity, taskID string) (Downloadable, error) {
	r, err := s.find(ctx, who, taskID)
	if err != nil {
		return Downloadable{}, err
	}
	if status := StatusOf(r); status != contract.StatusSuccess {
		refused := fault.New(fault.NotReady, "Export not ready or failed")
		refused.Retryable = status == contract.StatusProcessing
		return Downloadable{}, refused
	}
	if r.Output == nil {
		return Downloadable{}, fault.New(fault.NotFound, "File not found in R2: the worker left no output")
	}
	if !s.now().Before(r.Output.ExpiresAt) {
		return Downloadable{}, fault.New(fault.OutputExpired, "the output expired at %s; export again", r.Output.ExpiresAt.Format("2006-01-02T15:04:05Z07:00"))
	}
	d := Downloadable{Run: r, Output: *r.Output}
	if s.config.RedirectOver > 0 && r.Output.Size > s.config.RedirectOver {
		d.RedirectTo, err = s.ports.Outputs.PresignGet(ctx, r.Output.Key, r.Output.FileName, r.Output.ContentType, s.config.PresignFor)
		if err != nil {
			return Downloadable{}, fmt.Errorf("cannot sign the output's URL: %w", err)
		}
	}
	return d, nil
}

// Open reads a part of the output. The caller closes it. NotFound where its
// bytes are gone.
func (s *Service) Open(ctx context.Context, d Downloadable, span port.Span) (io.ReadCloser, error) {
	body, _, err := s.ports.Outputs.Open(ctx, port.Accepted, d.Output.Key, span)
	if errors.Is(err, port.ErrNotFound) {
		return nil, fault.New(fault.NotFound, "File not found in R2")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the output: %w", err)
	}
	return body, nil
}

// Downloaded notes that the output's last byte was sent: from now on it stays
// for the download retention, or for its own if that is shorter.
func (s *Service) Downloaded(ctx context.Context, d Downloadable) error {
	_, err := s.applyTo(ctx, d.Run, is(run.OutputExpiring{
		At: s.now().Add(s.config.DownloadRetention), Message: "downloaded",
	}))
	return err
}

// DeleteOutput removes the output before its time. It is no longer served once
// this has returned; repeating it is nil. Faults as for Output, without
// OutputExpired.
func (s *Service) DeleteOutput(ctx context.Context, who port.Identity, taskID string) error {
	d, err := s.Output(ctx, who, taskID)
	if fault.Is(err, fault.OutputExpired) {
		return nil
	}
	if err != nil {
		return err
	}
	r, err := s.applyTo(ctx, d.Run, is(run.OutputExpiring{At: s.now(), Message: "deleted on request"}))
	if err != nil {
		return fmt.Errorf("cannot expire the output: %w", err)
	}
	if err := s.deleteExpired(ctx, r.Ref()); err != nil {
		s.warn(ctx, r, "the output's bytes are not deleted yet; the sweep repeats it", err)
	}
	return nil
}

// deleteExpired removes the bytes of a run whose time is over: its output, and
// with the record its logs.
func (s *Service) deleteExpired(ctx context.Context, ref run.Ref) error {
	r, err := s.ports.Store.Load(ctx, ref)
	if err != nil {
		return err
	}
	if r.Output != nil && r.Output.DeletedAt.IsZero() && !s.now().Before(r.Output.ExpiresAt) {
		if err := s.ports.Outputs.Delete(ctx, port.Accepted, r.Output.Key); err != nil {
			return fmt.Errorf("cannot delete the output: %w", err)
		}
		if r, err = s.applyTo(ctx, r, is(run.OutputDeleted{})); err != nil {
			return err
		}
	}
	if len(r.Logs) == 0 || r.ExpiresAt.IsZero() || s.now().Before(r.ExpiresAt) {
		return nil
	}
	if err := s.ports.Outputs.DeletePrefix(ctx, port.Accepted, logPrefix(r)); err != nil {
		return fmt.Errorf("cannot delete the logs: %w", err)
	}
	_, err = s.applyTo(ctx, r, is(run.LogsDeleted{}))
	return err
}
