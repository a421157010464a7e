package logs

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Query selects a part of the logs of a task.
type Query struct {
	// Attempt is the first attempt; 0 is the current or last one.
	Attempt int
	// Stream selects a stream; empty selects both. A log whose source does not
	// distinguish them is all standard output.
	Stream livelog.Stream
	// Offset is the number of bytes to skip at the beginning of that attempt's log. A cut
	// counts with the number of its missing bytes.
	Offset int64
}

// pollInterval is how often a follower polls for changes by other processes.
const pollInterval = time.Second

// A follower renews its mark every followRenewal. A mark expires after followedFor. Until then
// the worker sends its output every two seconds.
const (
	followedFor   = 45 * time.Second
	followRenewal = 20 * time.Second
)

// Follow reads the logs of an attempt and of all later ones as they grow, until the run ends.
// It calls begin once, before the first parts, with the attempt and whether the run has ended.
// It calls each with successive parts; each returns false to stop. finished reports that the
// run has ended and all output was delivered. Follow returns without an error if ctx ends.
// Faults: NotFound for an unknown task or attempt, and for a task that has ended without a log.
func (s *Archive) Follow(
	ctx context.Context, who port.Identity, taskID string, q Query, begin func(attempt int, ended bool), each func([]Part) (more bool),
) (finished bool, err error) {
	f := follower{logs: s, begin: begin, each: each}
	r, err := s.tasks.Find(ctx, who, taskID)
	if err != nil {
		return false, err
	}
	if err := f.open(r, q); err != nil {
		return false, err
	}
	for {
		changed, endWatch := s.tasks.Watch(r.Ref())
		if r, err = s.tasks.Find(ctx, who, taskID); err == nil {
			finished, err = f.read(ctx, r)
		}
		if err == nil && !finished && !f.stopped {
			f.mark(ctx, r)
			s.await(ctx, changed)
		}
		endWatch()
		switch {
		case ctx.Err() != nil:
			return false, nil //nolint:nilerr // the client has disconnected
		case err != nil || finished || f.stopped:
			return finished, err
		}
	}
}

// await waits for a change by this process, or for the next poll for changes by others.
func (s *Archive) await(ctx context.Context, changed <-chan struct{}) {
	poll, stop := s.clock.NewTimer(pollInterval)
	defer stop()
	select {
	case <-changed:
	case <-poll:
	case <-ctx.Done():
	}
}

// follower is the state of one call of Follow.
type follower struct {
	logs           *Archive
	reader         *logReader
	begin          func(int, bool)
	each           func([]Part) bool
	begun, stopped bool
	found          bool
	marked         time.Time
}

// open checks the query and creates the reader.
func (f *follower) open(r run.Run, q Query) error {
	newest := max(r.Attempt.Number, 1)
	if q.Attempt == 0 {
		q.Attempt = newest
	}
	if q.Attempt < 1 || q.Attempt > newest {
		return fault.New(fault.NotFound, "the run has no attempt %d", q.Attempt)
	}
	f.reader = &logReader{logs: f.logs, attempt: q.Attempt, stream: q.Stream, offset: q.Offset, follow: true}
	return nil
}

// read delivers new output. finished reports that the run has ended and all output was
// delivered.
func (f *follower) read(ctx context.Context, r run.Run) (finished bool, err error) {
	if r.State.Terminal() && r.Attempt.Number == 0 { // no worker has written anything, or will
		if f.begun {
			return true, nil
		}
		return true, fault.New(fault.NotFound, "the run has ended without a log")
	}
	for !f.stopped {
		parts, err := f.reader.read(ctx, r)
		if err != nil {
			return false, fmt.Errorf("cannot read the log: %w", err)
		}
		f.found = f.found || f.reader.found
		last := f.reader.attempt >= r.Attempt.Number
		finished = f.reader.ended && last && r.State.Terminal()
		if finished && !f.found && !f.begun {
			return true, fault.New(fault.NotFound, "the run has ended without a log")
		}
		if !f.begun {
			f.begun = true
			f.begin(f.reader.attempt, r.State.Terminal())
		}
		if len(parts) > 0 && !f.each(parts) {
			f.stopped = true
		}
		if finished || !f.reader.ended || last {
			return finished, nil
		}
		f.reader = &logReader{logs: f.logs, attempt: f.reader.attempt + 1, stream: f.reader.stream, follow: true}
	}
	return false, nil
}

// mark records that a client follows the output of the current attempt, so that the worker
// sends it sooner. A failure only delays the output.
func (f *follower) mark(ctx context.Context, r run.Run) {
	now := f.logs.now()
	if !r.Attempt.SendsOutput || !r.IsCurrent(f.reader.attempt) || now.Sub(f.marked) < followRenewal {
		return
	}
	if err := f.logs.live.follow(ctx, r, now.Add(followedFor)); err != nil {
		f.logs.tasks.Warn(ctx, r, "cannot record that the output is followed", err)
		return
	}
	f.marked = now
}
