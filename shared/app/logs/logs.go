package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/base/redact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Tasks finds tasks, and waits for their changes.
type Tasks interface {
	// Find returns a task of the caller's tenant. Fault: NotFound.
	Find(ctx context.Context, who port.Identity, taskID string) (run.Run, error)
	// Watch returns a channel that is closed at the next change of a run in this process, and a
	// function that ends the watch. The next output of its worker is a change too.
	Watch(ref run.Ref) (changed <-chan struct{}, end func())
	// Notify closes the channels of the watches of a run.
	Notify(ref run.Ref)
	// Warn logs an error with the ids of a run.
	Warn(ctx context.Context, r run.Run, message string, err error)
}

// Secrets returns the redactor for a run's log. It masks tokens of Sortie, presigned URLs, the
// bucket's keys and the secrets of the job.
type Secrets interface {
	Redactor(ctx context.Context, r run.Run) (*redact.Redactor, error)
}

// Archive reads and stores the logs of attempts. It masks the secrets of the worker in them.
type Archive struct {
	tasks   Tasks
	runner  port.Runner
	outputs port.Outputs
	live    liveLogs
	secrets Secrets
	clock   clock.Clock
}

// New returns the logs of attempts. The logs come from the runner, if it implements
// port.MachineLogs, and otherwise from the uploads of workers.
func New(tasks Tasks, runner port.Runner, outputs port.Outputs, secrets Secrets, c clock.Clock) *Archive {
	return &Archive{tasks, runner, outputs, liveLogs{outputs}, secrets, c}
}

// now returns the time without its monotonic part: it is compared with stored times.
func (s *Archive) now() time.Time { return s.clock.Now().UTC().Round(0) }

// Log is the output of an attempt's worker.
type Log struct {
	Attempt int
	Parts   []Part
	// Ended reports that the attempt is over and the log is complete.
	Ended bool
}

// Log reads the log of one attempt. The sources are, in this order: the stored log,
// the output that the worker has sent, the machine, the worker's upload. Faults:
// NotFound for an unknown task, an unknown attempt, and an attempt without a log.
func (s *Archive) Log(ctx context.Context, who port.Identity, taskID string, q Query) (Log, error) {
	r, err := s.tasks.Find(ctx, who, taskID)
	if err != nil {
		return Log{}, err
	}
	if q.Attempt == 0 {
		q.Attempt = r.Attempt.Number
	}
	if q.Attempt < 1 || q.Attempt > r.Attempt.Number {
		return Log{}, fault.New(fault.NotFound, "the run has no attempt %d", q.Attempt)
	}
	reader := logReader{logs: s, attempt: q.Attempt, stream: q.Stream, offset: q.Offset}
	log := Log{Attempt: q.Attempt, Ended: attemptOver(r, q.Attempt)}
	if log.Parts, err = reader.read(ctx, r); err != nil {
		return Log{}, fmt.Errorf("cannot read the log: %w", err)
	}
	if !reader.found {
		return Log{}, fault.New(fault.NotFound, "attempt %d has no log: its runner provides none, and its worker sent none", q.Attempt)
	}
	return log, nil
}

// stored reads the stored log of an attempt: its frames, or its text if it has none.
func (s *Archive) stored(ctx context.Context, r run.Run, attempt int) ([]byte, []livelog.Frame, error) {
	key := limit.LogKey(r.Tenant, r.TaskID, attempt)
	content, object, err := s.span(ctx, port.Accepted, key, port.Span{})
	if err != nil || object.ContentType != livelog.ContentType {
		return content, nil, err
	}
	frames, err := livelog.DecodeFrames(content)
	return nil, append([]livelog.Frame{}, frames...), err
}

// current reads the log of the current attempt from its machine, or from its worker's upload,
// and masks its secrets. It returns ErrNotFound if neither exists.
func (s *Archive) current(ctx context.Context, r run.Run) ([]byte, error) {
	mask, err := s.secrets.Redactor(ctx, r)
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

// object reads an object and masks its secrets. It cuts the middle out of an object over the
// limit. It reads secretLength more bytes at each end of the cut, so that a secret at the cut
// is masked as a whole.
func (s *Archive) object(ctx context.Context, bucket port.Bucket, key string, mask *redact.Redactor) ([]byte, error) {
	about, err := s.outputs.Head(ctx, bucket, key)
	if err != nil {
		return nil, err
	}
	if about.Size <= limit.Log {
		text, _, err := s.span(ctx, bucket, key, port.Span{})
		return Shorten(mask.Bytes(text), limit.Log), err
	}
	half := halfOf(limit.Log)
	begin, _, err := s.span(ctx, bucket, key, port.Span{Length: half + secretLength})
	if err != nil {
		return nil, err
	}
	end, _, err := s.span(ctx, bucket, key, port.Span{Offset: max(0, about.Size-half-secretLength), Length: half + secretLength})
	begin, end = mask.Bytes(begin), mask.Bytes(end)
	begin, end = begin[:min(len(begin), int(half))], end[max(0, len(end)-int(half)):]
	return join(begin, end, about.Size-2*half), err
}

func (s *Archive) span(ctx context.Context, bucket port.Bucket, key string, span port.Span) ([]byte, port.Object, error) {
	body, object, err := s.outputs.Open(ctx, bucket, key, span)
	if err != nil {
		return nil, object, err
	}
	text, err := io.ReadAll(io.LimitReader(body, 4*limit.Log))
	return text, object, errors.Join(err, body.Close())
}

// StoreFinal stores the log of an ended attempt until the record expires, and deletes the output
// that the worker has sent. It reports whether the attempt has a log. It is best effort: a run
// does not wait for its log. If storing the log fails, the sent output stays.
func (s *Archive) StoreFinal(ctx context.Context, r run.Run) (stored bool) {
	if slices.Contains(r.Logs, r.Attempt.Number) || !r.KeepsLogs() {
		return false
	}
	key := limit.LogKey(r.Tenant, r.TaskID, r.Attempt.Number)
	content, kind, err := s.final(ctx, r)
	if err == nil && len(content) > 0 {
		err = s.outputs.Put(ctx, port.Accepted, key, kind, content)
		stored = err == nil
	}
	if errors.Is(err, port.ErrNotFound) && r.Attempt.WorkerID != "" {
		// An earlier try may have stored it, and deleted its sources.
		_, err = s.outputs.Head(ctx, port.Accepted, key)
		stored = err == nil
	}
	if r.Attempt.SendsOutput && (err == nil || errors.Is(err, port.ErrNotFound)) {
		err = s.live.remove(ctx, r, r.Attempt.Number)
	}
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		s.tasks.Warn(ctx, r, "cannot store the attempt's log", err)
		return stored || r.Attempt.SendsOutput
	}
	return stored
}

// final returns the log of an ended attempt and its content type.
func (s *Archive) final(ctx context.Context, r run.Run) ([]byte, string, error) {
	const plain = "text/plain; charset=utf-8"
	var sent []livelog.Frame
	if r.Attempt.SendsOutput {
		mask, err := s.secrets.Redactor(ctx, r)
		if err != nil {
			return nil, "", err
		}
		m := newMasker(mask)
		frames, err := s.live.frames(ctx, r, r.Attempt.Number, &livelog.Reader{})
		if err != nil {
			return nil, "", err
		}
		sent = append(m.feed(frames), m.rest(math.MaxInt)...)
		// A worker uploads its log as well only if it could not send all of it.
		text, err := s.object(ctx, port.Uploads, limit.AttemptLog(r.TaskID, r.Attempt.Number), mask)
		if err == nil || !errors.Is(err, port.ErrNotFound) {
			return text, plain, err
		}
	}
	if len(sent) == 0 {
		text, err := s.current(ctx, r)
		return text, plain, err
	}
	if r.Attempt.Report == nil {
		if text, err := s.current(ctx, r); err == nil {
			sent = append(sent, unsent(sent, text)...)
		}
	}
	return livelog.EncodeFrames(sent), livelog.ContentType, nil
}

// unsent returns the part of the machine's log that a dead worker has not sent.
func unsent(sent []livelog.Frame, text []byte) []livelog.Frame {
	var last []byte
	for i := len(sent) - 1; i >= 0 && len(last) < overlap && sent[i].Cut == 0; i-- {
		last = append(bytes.Clone(sent[i].Data), last...)
	}
	last = last[max(0, len(last)-overlap):]
	at := bytes.LastIndex(text, last)
	if at < 0 || len(last) == 0 || at+len(last) == len(text) {
		return nil
	}
	return []livelog.Frame{{Stream: livelog.Stdout, Data: text[at+len(last):]}}
}

// Shorten cuts the middle out of a text over the limit. A line in its place states how much is
// missing.
func Shorten(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	half := int(halfOf(limit))
	return join(text[:half], text[len(text)-half:], int64(len(text)-2*half))
}

// halfOf returns the length of each end of a shortened text. With the line between them, both
// ends fit the limit, so that the text is not shortened twice.
func halfOf(limit int) int64 { return int64(max(limit-64, 0) / 2) }

func join(begin, end []byte, missing int64) []byte {
	return bytes.Join([][]byte{begin, end}, limit.CutMark(missing))
}
