package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/redact"
	"github.com/sortie-dev/sortie/shared/run"
)

// Logs reads and stores the logs of attempts. It masks the secrets of the worker in
// them: tokens of Sortie, presigned URLs, the bucket's keys and the secrets of its job.
type Logs struct {
	*Records
	runner  port.Runner
	outputs port.Outputs
	bucket  BucketSource
	secrets port.Secrets
}

// NewLogs returns the logs of attempts. A runner that implements port.MachineLogs
// is the first source; the other is what workers upload.
func NewLogs(records *Records, runner port.Runner, outputs port.Outputs, bucket BucketSource, secrets port.Secrets) *Logs {
	return &Logs{records, runner, outputs, bucket, secrets}
}

// Log is the output of an attempt's worker to its standard streams.
type Log struct {
	Attempt int
	Text    []byte
	// Ended reports that the attempt is over and the log is complete.
	Ended bool
}

// Log reads the log of an attempt; attempt 0 is the current or last one. The
// sources are, in this order: the stored log, the machine, the worker's upload.
// Faults: NotFound for an unknown task, an unknown attempt, and an attempt without
// a log.
func (s *Logs) Log(ctx context.Context, who port.Identity, taskID string, attempt int) (Log, error) {
	r, err := s.find(ctx, who, taskID)
	if err != nil {
		return Log{}, err
	}
	if attempt == 0 {
		attempt = r.Attempt.Number
	}
	if attempt < 1 || attempt > r.Attempt.Number {
		return Log{}, fault.New(fault.NotFound, "the task has no attempt %d", attempt)
	}
	log := Log{Attempt: attempt, Ended: !r.IsCurrent(attempt) && !(r.Queued() && attempt == r.Attempt.Number)}
	if slices.Contains(r.Logs, attempt) {
		log.Text, err = s.object(ctx, port.Accepted, limit.LogKey(r.Tenant, r.TaskID, attempt), &redact.Redactor{})
	} else {
		err = port.ErrNotFound
		if attempt == r.Attempt.Number {
			log.Text, err = s.current(ctx, r)
		}
	}
	if errors.Is(err, port.ErrNotFound) {
		return Log{}, fault.New(fault.NotFound, "attempt %d has no log: its runner provides none, and its worker uploaded none", attempt)
	}
	if err != nil {
		return Log{}, fmt.Errorf("cannot read the log: %w", err)
	}
	return log, nil
}

// redactor returns the redactor for the log of a run's worker. It knows the present
// keys of the bucket and the present secrets of the run's program; a key that was
// replaced since the launch is recognized in a printed environment only, a secret that
// was replaced not at all.
func (s *Logs) redactor(ctx context.Context, r run.Run) (*redact.Redactor, error) {
	bucket, err := s.bucket(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the worker's keys: %w", err)
	}
	values, err := secretValues(ctx, s.secrets, r)
	if err != nil {
		return nil, err
	}
	return redact.New(limit.Issuer, bucket.AccessKeyID, bucket.SecretAccessKey).Naming(values...), nil
}

// current reads the log of the current attempt from its machine, or from its
// worker's upload, and masks its secrets. ErrNotFound if neither exists.
func (s *Logs) current(ctx context.Context, r run.Run) ([]byte, error) {
	mask, err := s.redactor(ctx, r)
	if err != nil {
		return nil, err
	}
	if machines, can := s.runner.(port.MachineLogs); can && r.Attempt.Machine.Known() {
		text, err := machines.Logs(ctx, r.Attempt.Machine)
		if err == nil {
			return Shorten(mask.Bytes(text), limit.Log), nil
		}
		if !errors.Is(err, port.ErrNotFound) {
			return nil, err
		}
	}
	if r.Attempt.WorkerID == "" {
		return nil, port.ErrNotFound // a worker of the export contract has no upload URL
	}
	return s.object(ctx, port.Uploads, limit.AttemptLog(r.TaskID, r.Attempt.Number), mask)
}

// secretLength is more than the length of any secret of a worker.
const secretLength = 8 << 10

// object reads an object and masks its secrets; its middle is left out if it is over
// the limit. A secret on the edge of the middle is read as a whole.
func (s *Logs) object(ctx context.Context, bucket port.Bucket, key string, mask *redact.Redactor) ([]byte, error) {
	about, err := s.outputs.Head(ctx, bucket, key)
	if err != nil {
		return nil, err
	}
	if about.Size <= limit.Log {
		text, err := s.span(ctx, bucket, key, port.Span{})
		return Shorten(mask.Bytes(text), limit.Log), err
	}
	half := halfOf(limit.Log)
	begin, err := s.span(ctx, bucket, key, port.Span{Length: half + secretLength})
	if err != nil {
		return nil, err
	}
	end, err := s.span(ctx, bucket, key, port.Span{Offset: max(0, about.Size-half-secretLength), Length: half + secretLength})
	begin, end = mask.Bytes(begin), mask.Bytes(end)
	begin, end = begin[:min(len(begin), int(half))], end[max(0, len(end)-int(half)):]
	return join(begin, end, about.Size-2*half), err
}

func (s *Logs) span(ctx context.Context, bucket port.Bucket, key string, span port.Span) ([]byte, error) {
	body, _, err := s.outputs.Open(ctx, bucket, key, span)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(body, 2*limit.Log))
	return text, errors.Join(err, body.Close())
}

// keep stores the log of an attempt that is over for as long as the record. It
// reports whether there was one. It is best effort: a run does not wait for its
// log.
func (s *Logs) keep(ctx context.Context, r run.Run) (stored bool) {
	if slices.Contains(r.Logs, r.Attempt.Number) || r.Work.Program != nil && r.Work.Program.DropLogs {
		return false
	}
	text, err := s.current(ctx, r)
	if err == nil && len(text) > 0 {
		key := limit.LogKey(r.Tenant, r.TaskID, r.Attempt.Number)
		err = s.outputs.Put(ctx, port.Accepted, key, "text/plain; charset=utf-8", text)
		stored = err == nil
	}
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		s.warn(ctx, r, "cannot store the attempt's log", err)
	}
	return stored
}

// Shorten cuts the middle out of a text that is over the limit and states there
// how much is missing.
func Shorten(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	half := int(halfOf(limit))
	return join(text[:half], text[len(text)-half:], int64(len(text)-2*half))
}

// halfOf is the length of each end of a shortened text: with the line between
// them it is within the limit, and is not shortened twice.
func halfOf(limit int) int64 { return int64(max(limit-64, 0) / 2) }

func join(begin, end []byte, missing int64) []byte {
	mark := fmt.Appendf(nil, "\n[%d bytes are cut out here]\n", missing)
	return bytes.Join([][]byte{begin, end}, mark)
}
