package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// LogLimit is how much of a log is kept and served, in bytes: half of it from
// the beginning, half from the end.
const LogLimit = 1 << 20

// MachineLogs is a capability of a Runner: it can tell what a machine's program
// has written.
type MachineLogs interface {
	// Logs reads what the program has written so far to its standard output and
	// error, in the order of the writes; the platform may have cut it, and then
	// marks the cut. It can be asked for a while after the machine is gone.
	// ErrNotFound where the platform does not know the machine, or keeps nothing.
	Logs(ctx context.Context, id string) ([]byte, error)
}

// Log is what the worker of an attempt has written.
type Log struct {
	Attempt int
	Text    []byte
	// Ended: the attempt is over, and nothing is added any more.
	Ended bool
}

// Log reads the log of a task's attempt; attempt 0 is the current one, or the
// last. It comes from the machine while that can tell it, else from what the
// worker has uploaded, and from what was kept once the attempt is over. Faults:
// NotFound for an unknown task, an attempt that never was, and a log that
// nobody has. It needs Runner and Outputs beside Store.
func (s *Service) Log(ctx context.Context, who port.Identity, taskID string, attempt int) (Log, error) {
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
	log := Log{Attempt: attempt, Ended: !r.IsCurrent(attempt)}
	if slices.Contains(r.Logs, attempt) {
		log.Text, err = s.object(ctx, port.Accepted, logKey(r, attempt))
	} else {
		err = port.ErrNotFound
		if attempt == r.Attempt.Number {
			log.Text, err = s.machineLog(ctx, r)
		}
	}
	if errors.Is(err, port.ErrNotFound) {
		return Log{}, fault.New(fault.NotFound, "there is no log of attempt %d: its runner tells none, and its worker has uploaded none", attempt)
	}
	if err != nil {
		return Log{}, fmt.Errorf("cannot read the log: %w", err)
	}
	return log, nil
}

// machineLog is the log of the current attempt as its machine tells it, else as
// its worker has uploaded it. ErrNotFound where there is none.
func (s *Service) machineLog(ctx context.Context, r run.Run) ([]byte, error) {
	if machines, can := s.ports.Runner.(MachineLogs); can && r.Attempt.MachineID != "" {
		text, err := machines.Logs(ctx, r.Attempt.MachineID)
		if err == nil {
			return Shorten(text, LogLimit), nil
		}
		if !errors.Is(err, port.ErrNotFound) {
			return nil, err
		}
	}
	if r.Attempt.WorkerID == "" {
		return nil, port.ErrNotFound // it knows of no place to upload to
	}
	return s.object(ctx, port.Uploads, attemptPrefix(r.TaskID, r.Attempt.Number)+"log")
}

// object reads an object, without its middle where it is over the limit.
func (s *Service) object(ctx context.Context, bucket port.Bucket, key string) ([]byte, error) {
	about, err := s.ports.Outputs.Head(ctx, bucket, key)
	if err != nil {
		return nil, err
	}
	if about.Size <= LogLimit {
		return s.span(ctx, bucket, key, port.Span{})
	}
	half := halfOf(LogLimit)
	begin, err := s.span(ctx, bucket, key, port.Span{Length: half})
	if err != nil {
		return nil, err
	}
	end, err := s.span(ctx, bucket, key, port.Span{Offset: about.Size - half, Length: half})
	return join(begin, end, about.Size-2*half), err
}

func (s *Service) span(ctx context.Context, bucket port.Bucket, key string, span port.Span) ([]byte, error) {
	body, _, err := s.ports.Outputs.Open(ctx, bucket, key, span)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(body, 2*LogLimit))
	return text, errors.Join(err, body.Close())
}

// keepLog puts the log of an attempt that is over where it stays as long as the
// record. kept is false where there is none. A log is not worth a run: what
// fails is told in the log of this software, and the run goes on without.
func (s *Service) keepLog(ctx context.Context, r run.Run) (kept bool) {
	if slices.Contains(r.Logs, r.Attempt.Number) {
		return false
	}
	text, err := s.machineLog(ctx, r)
	if err == nil && len(text) > 0 {
		err = s.ports.Outputs.Put(ctx, port.Accepted, logKey(r, r.Attempt.Number), "text/plain; charset=utf-8", text)
		kept = err == nil
	}
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		s.warn(ctx, r, "cannot keep the attempt's log", err)
	}
	return kept
}

// logKey is where an attempt's log is kept.
func logKey(r run.Run, attempt int) string {
	return logPrefix(r) + strconv.Itoa(attempt) + ".log"
}

func logPrefix(r run.Run) string { return r.Tenant + "/logs/" + r.TaskID + "/" }

// Shorten cuts the middle out of a text that is over the limit, and says there
// how much it was.
func Shorten(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	half := int(halfOf(limit))
	return join(text[:half], text[len(text)-half:], int64(len(text)-2*half))
}

// halfOf is what is left of each end of a text that is cut: with the line that
// says so it is within the limit, and is not cut again.
func halfOf(limit int) int64 { return int64(max(limit-64, 0) / 2) }

func join(begin, end []byte, missing int64) []byte {
	mark := fmt.Appendf(nil, "\n[%d bytes are cut out here]\n", missing)
	return bytes.Join([][]byte{begin, end}, mark)
}
