package logs

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Part is a piece of the log of an attempt.
type Part struct {
	Attempt int
	livelog.Frame
	// Next is the offset in the log after this piece.
	Next int64
}

// shortHold is the length up to which a single read returns text that may be the start of a
// secret.
const shortHold = 8

// contactTime is how long after its start a worker is expected to report whether it sends its
// output. Until then a follower does not read the machine's log, which merges both streams in
// another order.
const contactTime = 5 * time.Second

// logReader reads the log of one attempt in order, as it grows.
type logReader struct {
	logs    *Archive
	attempt int
	stream  livelog.Stream // empty: both
	// offset is the position of the next byte to return, in the log of the stream.
	offset int64
	// follow reports that the caller reads repeatedly until ended.
	follow bool
	// found reports that there is a log, ended that the attempt is over and all of its log was
	// returned.
	found, ended bool

	live livelog.Reader
	mask *masker
	at   int64  // number of bytes that live and mask have returned
	text []byte // the last read text of a log without frames
}

// read returns the output since the last read.
func (l *logReader) read(ctx context.Context, r run.Run) ([]Part, error) {
	stored := slices.Contains(r.Logs, l.attempt)
	last := l.attempt == r.Attempt.Number
	switch {
	case l.ended, l.attempt > r.Attempt.Number: // over, or not begun
		return nil, nil
	case stored:
		text, frames, err := l.logs.stored(ctx, r, l.attempt)
		if errors.Is(err, port.ErrNotFound) { // storing it failed
			l.ended = true
			return l.readLive(ctx, r, true)
		}
		if err != nil {
			return nil, err
		}
		l.found, l.ended = true, true
		if frames == nil {
			return l.plain(text), nil
		}
		l.at = 0
		return l.place(frames), nil
	case last && r.Attempt.SendsOutput:
		over := attemptOver(r, l.attempt)
		parts, err := l.readLive(ctx, r, over)
		// The stored log of an attempt that was declared dead can have more output than
		// was sent.
		l.ended = over && (settled(r) || l.found && r.Attempt.Report != nil)
		if err != nil || l.found || l.follow && !l.ended {
			return parts, err
		}
	case !last:
		l.ended = true
		return nil, nil
	case l.follow && awaitsContact(r, l.logs.now()):
		return nil, nil
	}
	text, err := l.logs.current(ctx, r)
	l.ended = settled(r)
	if errors.Is(err, port.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l.found = true
	return l.plain(text), nil
}

// readLive returns the output that the worker has sent since the last read. over reports that
// the attempt is over.
func (l *logReader) readLive(ctx context.Context, r run.Run, over bool) ([]Part, error) {
	if l.mask == nil {
		redactor, err := l.logs.secrets.Redactor(ctx, r)
		if err != nil {
			return nil, err
		}
		l.mask = newMasker(redactor)
	}
	frames, err := l.logs.live.frames(ctx, r, l.attempt, &l.live)
	if err != nil {
		return nil, err
	}
	frames = l.mask.feed(frames)
	hold := -1
	switch {
	case over:
		hold = math.MaxInt
	case !l.follow:
		hold = shortHold
	}
	l.found = l.live.Began()
	return l.place(append(frames, l.mask.rest(hold)...)), nil
}

// awaitsContact reports whether the first call of the run's worker is still expected.
func awaitsContact(r run.Run, now time.Time) bool {
	return r.IsCurrent(r.Attempt.Number) && r.Attempt.WorkerID == "" &&
		(r.Attempt.StartedAt.IsZero() || now.Before(r.Attempt.StartedAt.Add(contactTime)))
}

// attemptOver reports whether an attempt is over. It is not while its run is queued.
func attemptOver(r run.Run, attempt int) bool {
	return !r.IsCurrent(attempt) && !(r.Queued() && attempt == r.Attempt.Number)
}

// settled reports whether the last attempt is over and its log is stored, if it has one.
func settled(r run.Run) bool { return attemptOver(r, r.Attempt.Number) && r.State != run.Terminating }

// place returns the parts of the frames after the offset, and advances the offset.
func (l *logReader) place(frames []livelog.Frame) []Part {
	var parts []Part
	for _, f := range frames {
		if l.stream != "" && f.Stream != l.stream {
			continue
		}
		begin := l.at
		l.at += f.Length()
		if l.at <= l.offset {
			continue
		}
		if skip := l.offset - begin; skip > 0 && f.Cut > 0 {
			f.Cut -= skip
		} else if skip > 0 {
			f.Data = f.Data[skip:]
		}
		l.offset = l.at
		parts = append(parts, Part{l.attempt, f, l.offset})
	}
	return parts
}

// plain returns the part of a log without frames that is after the offset and was not read
// before. All of it is standard output.
func (l *logReader) plain(text []byte) []Part {
	if l.text == nil {
		l.text = text[:min(int64(len(text)), l.offset)]
	}
	data := added(l.text, text)
	l.text = text
	if len(data) == 0 || l.stream == livelog.Stderr {
		return nil
	}
	l.offset += int64(len(data))
	return []Part{{l.attempt, livelog.Frame{Stream: livelog.Stdout, Data: data}, l.offset}}
}

// overlap is the length of the text by which new output is found in a log whose middle was cut
// since the last read.
const overlap = 4 << 10

// added returns the part of a log that was not read before.
func added(before, log []byte) []byte {
	if bytes.HasPrefix(log, before) {
		return log[len(before):]
	}
	last := before[max(0, len(before)-overlap):]
	if at := bytes.LastIndex(log, last); at >= 0 {
		return log[at+len(last):]
	}
	return log
}
