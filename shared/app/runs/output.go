package runs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Outputs accepts, clears and deletes the objects of runs.
type Outputs struct {
	*Records
	outputs port.Outputs
	newest  newestRuns
}

// NewOutputs returns the outputs of runs in an object store.
func NewOutputs(records *Records, outputs port.Outputs) *Outputs {
	return &Outputs{Records: records, outputs: outputs}
}

// accept verifies the output of a worker that reported success, and copies it to the bucket
// that no worker can write. wrong is the fault of an output that is missing or differs from the
// report. If the store reports no digest, accept computes the digest of an output of at most
// readable bytes. It returns TryAgain if the upload changed during the copy.
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

// text returns the content of a small accepted object without trailing line ends; nil if it is
// not text.
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

// digest returns the digest of an accepted object: that of the store, or one computed from an
// object of at most readable bytes. It is empty for a larger object.
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

// clear deletes the uploads of an attempt. If the attempt succeeded without an accepted output,
// it also deletes the accepted objects. It returns errNextAttempt if the run has another
// attempt, which may own the uploads.
func (s *Outputs) clear(ctx context.Context, r run.Run, accepted *run.Output) error {
	nothing := r.Succeeded() && r.Upload() == nil && r.Attempt.WorkerID == ""
	if r.Attempt.MachineName == "" || nothing {
		return nil
	}
	if accepted != nil && r.Attempt.Number == 1 {
		// No other attempt has uploaded, and the worker has named its output. Deletes are free,
		// and the two listings of a prefix are not. The bucket's lifecycle rule deletes other
		// uploads of the worker.
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

// clearLost deletes the uploads of a lost attempt, which are never served. A sweep repeats it
// until it succeeds. Later uploads of a machine that still runs are deleted with the machine.
func (s *Outputs) clearLost(ctx context.Context, r run.Run) (run.Run, error) {
	if !r.Attempt.UploadsLeft {
		return r, nil
	}
	if err := s.clear(ctx, r, nil); err != nil {
		return r, fmt.Errorf("cannot clear the uploads of the lost attempt: %w", err)
	}
	return s.applyTo(ctx, r, constantFact(run.UploadsCleared{}))
}

// clearUploads deletes all uploads of a run's workers.
func (s *Outputs) clearUploads(ctx context.Context, r run.Run) error {
	return s.outputs.DeletePrefix(ctx, port.Uploads, limit.OutputPrefix(r.TaskID))
}

// deleteExpired deletes the expired objects of a run: its output, its logs, and, once the record
// has expired, its input. It deletes the uploads of a lost attempt at once.
func (s *Outputs) deleteExpired(ctx context.Context, ref run.Ref) error {
	r, err := s.store.Load(ctx, ref)
	if err != nil {
		return err
	}
	return s.deleteExpiredOf(ctx, r)
}

func (s *Outputs) deleteExpiredOf(ctx context.Context, r run.Run) (err error) {
	if r, err = s.clearLost(ctx, r); err != nil {
		return err
	}
	if r.Output != nil && r.Output.DeletedAt.IsZero() && r.Output.Expired(s.now()) {
		if err := s.outputs.Delete(ctx, port.Accepted, r.Output.Key); err != nil {
			return fmt.Errorf("cannot delete the output: %w", err)
		}
		if r, err = s.applyTo(ctx, r, constantFact(run.OutputDeleted{})); err != nil {
			return err
		}
	}
	if at := r.LogsExpireAt; r.LogsLeft() && !at.IsZero() && !s.now().Before(at) {
		if r, err = s.deleteLogs(ctx, r); err != nil {
			return err
		}
	}
	if !r.RecordBytesLeft() || r.ExpiresAt.IsZero() || s.now().Before(r.ExpiresAt) {
		return nil
	}
	if err := s.outputs.DeletePrefix(ctx, port.Accepted, limit.LogPrefix(r.Tenant, r.TaskID)); err != nil {
		return fmt.Errorf("cannot delete the input and the logs: %w", err)
	}
	_, err = s.applyTo(ctx, r, constantFact(run.RecordBytesDeleted{}))
	return err
}

// deleteLogs deletes the logs of a run. The keys of a log begin with the number of its attempt;
// that of the input, which stays, does not.
func (s *Outputs) deleteLogs(ctx context.Context, r run.Run) (run.Run, error) {
	for digit := range min(r.Attempt.Number, 9) {
		if err := s.outputs.DeletePrefix(ctx, port.Accepted, limit.LogPrefix(r.Tenant, r.TaskID)+strconv.Itoa(digit+1)); err != nil {
			return r, fmt.Errorf("cannot delete the logs: %w", err)
		}
	}
	return s.applyTo(ctx, r, constantFact(run.LogsDeleted{}))
}
