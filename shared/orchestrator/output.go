package orchestrator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Outputs accepts, clears and deletes the objects of runs.
type Outputs struct {
	*Records
	outputs port.Outputs
}

// NewOutputs returns the outputs of runs in an object store.
func NewOutputs(records *Records, outputs port.Outputs) *Outputs { return &Outputs{records, outputs} }

// accept verifies the output of a worker that reported success, and copies it to
// the bucket that no worker can write. wrong is why there is no output to accept. An
// output of at most readable bytes is read if the store does not report its digest.
func (s *Outputs) accept(ctx context.Context, r run.Run, readable int64) (accepted *run.Output, wrong *fault.Fault, err error) {
	reported := r.Upload()
	if !r.Succeeded() || reported == nil {
		return nil, nil, nil
	}
	upload := *reported
	object, err := s.outputs.Head(ctx, port.Uploads, upload.Key)
	if err == nil && upload.HasSize(object.Size) {
		object, err = s.outputs.Accept(ctx, upload.Key, object.ETag)
	}
	if errors.Is(err, port.ErrNotFound) {
		// An earlier try may have accepted it and cleared the upload.
		object, err = s.outputs.Head(ctx, port.Accepted, upload.Key)
	}
	switch {
	case errors.Is(err, port.ErrNotFound):
		return nil, fault.New(fault.OutputMissing, "the output %s is not in the bucket", upload.Key), nil
	case errors.Is(err, port.ErrChanged):
		return nil, nil, TryAgain{err}
	case err != nil:
		return nil, nil, err
	case !upload.HasSize(object.Size):
		return nil, fault.New(fault.OutputMismatch, "the output %s has %d bytes, want the reported %d",
			upload.Key, object.Size, upload.Size), nil
	}
	upload.Size = object.Size
	stored := ""
	if upload.Digest != "" {
		if stored, err = s.digest(ctx, object, readable); err != nil {
			return nil, nil, err
		}
		if stored != "" && stored != upload.Digest {
			return nil, fault.New(fault.OutputMismatch, "the output %s has the digest %s, want the reported %s",
				upload.Key, stored, upload.Digest), nil
		}
	}
	upload.Digest = stored
	accepted = &run.Output{Upload: upload, ETag: object.ETag}
	if r.PassesOutput() && upload.Size <= limit.OutputText {
		if accepted.Text, err = s.text(ctx, object); err != nil {
			return nil, nil, err
		}
	}
	return accepted, nil, nil
}

// text returns the content of a small accepted object without the line ends at its end;
// nil if it is no text.
func (s *Outputs) text(ctx context.Context, object port.Object) (*string, error) {
	body, _, err := s.outputs.Open(ctx, port.Accepted, object.Key, port.Span{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the output: %w", err)
	}
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(io.LimitReader(body, limit.OutputText+1))
	if err == nil && int64(len(content)) != object.Size {
		err = fmt.Errorf("read %d of %d bytes", len(content), object.Size)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "cannot read the output")
	}
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return nil, nil
	}
	return new(strings.TrimRight(string(content), "\r\n")), nil
}

// digest returns the digest of an accepted object: the store's, or one computed from the
// bytes of an object of at most readable bytes; otherwise empty.
func (s *Outputs) digest(ctx context.Context, object port.Object, readable int64) (string, error) {
	if object.Digest != "" || object.Size > readable {
		return object.Digest, nil
	}
	body, _, err := s.outputs.Open(ctx, port.Accepted, object.Key, port.Span{})
	if err != nil {
		return "", fmt.Errorf("cannot read the output: %w", err)
	}
	defer func() { _ = body.Close() }()
	sum := sha256.New()
	n, err := io.Copy(sum, body)
	if err == nil && n != object.Size {
		err = fmt.Errorf("read %d of %d bytes", n, object.Size)
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "cannot read the output")
	}
	return fmt.Sprintf("sha256:%x", sum.Sum(nil)), nil
}

// clear removes the uploads of an attempt, and what was accepted of it if there is
// no accepted output. The error is errNextAttempt if the run has moved on: the uploads may be
// those of its next attempt.
func (s *Outputs) clear(ctx context.Context, r run.Run, accepted *run.Output) error {
	nothing := r.Succeeded() && r.Upload() == nil && r.Attempt.WorkerID == ""
	if r.Attempt.MachineName == "" || nothing {
		return nil
	}
	if accepted != nil && r.Attempt.Number == 1 {
		// No other attempt has uploaded, and the worker has named its output. Deletes
		// are free, and the two listings of a prefix are not. The bucket's lifecycle
		// rule removes what the worker uploaded beside it.
		return errors.Join(
			s.outputs.Delete(ctx, port.Uploads, accepted.Key),
			s.outputs.Delete(ctx, port.Uploads, limit.AttemptLog(r.TaskID, 1)),
		)
	}
	if _, err := s.reload(ctx, r); err != nil {
		return err
	}
	if err := s.clearUploads(ctx, r); err != nil {
		return err
	}
	if accepted == nil && r.Succeeded() {
		return s.outputs.DeletePrefix(ctx, port.Accepted, limit.OutputPrefix(r.TaskID))
	}
	return nil
}

// clearLost removes what the worker of a lost attempt has uploaded: it is not served. A sweep
// of outputs repeats it until it is done; what a machine that still runs uploads after that is
// removed with the machine.
func (s *Outputs) clearLost(ctx context.Context, r run.Run) (run.Run, error) {
	if !r.Attempt.Uncleared {
		return r, nil
	}
	if err := s.clear(ctx, r, nil); err != nil {
		return r, fmt.Errorf("cannot clear the uploads of the lost attempt: %w", err)
	}
	return s.applyTo(ctx, r, is(run.UploadsCleared{}))
}

// clearUploads removes everything that workers have uploaded for a run.
func (s *Outputs) clearUploads(ctx context.Context, r run.Run) error {
	return s.outputs.DeletePrefix(ctx, port.Uploads, limit.OutputPrefix(r.TaskID))
}

// deleteExpired deletes the objects of a run that have expired: its output, with the record
// its input and its logs, and at once the uploads of a lost attempt.
func (s *Outputs) deleteExpired(ctx context.Context, ref run.Ref) error {
	r, err := s.store.Load(ctx, ref)
	if err != nil {
		return err
	}
	if r, err = s.clearLost(ctx, r); err != nil {
		return err
	}
	if r.Output != nil && r.Output.DeletedAt.IsZero() && !s.now().Before(r.Output.ExpiresAt) {
		if err := s.outputs.Delete(ctx, port.Accepted, r.Output.Key); err != nil {
			return fmt.Errorf("cannot delete the output: %w", err)
		}
		if r, err = s.applyTo(ctx, r, is(run.OutputDeleted{})); err != nil {
			return err
		}
	}
	if !r.RecordBytesLeft() || r.ExpiresAt.IsZero() || s.now().Before(r.ExpiresAt) {
		return nil
	}
	if err := s.outputs.DeletePrefix(ctx, port.Accepted, limit.LogPrefix(r.Tenant, r.TaskID)); err != nil {
		return fmt.Errorf("cannot delete the input and the logs: %w", err)
	}
	_, err = s.applyTo(ctx, r, is(run.RecordBytesDeleted{}))
	return err
}
