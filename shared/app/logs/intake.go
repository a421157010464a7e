package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Workers checks calls with output against the worker contract. Its errors are the refusals of that
// contract.
type Workers interface {
	// SendsOutput records that the worker with a token sends the output of an attempt, and
	// returns the run. Refusals: Forbidden for a token of another run or attempt, TaskExpired
	// for an attempt that has ended, AttemptMismatch.
	SendsOutput(ctx context.Context, bearer token.Bearer, attempt int) (run.Run, error)
	// StillSends reads a run again. It returns the refusal of further output of the attempt;
	// nil if output is accepted.
	StillSends(ctx context.Context, r run.Run, attempt int) error
	// CancelDelivered records that the answer to a call carries the cancel request.
	CancelDelivered(ctx context.Context, r run.Run, attempt int)
	// Refused logs the fault of a call with output, and returns its refusal.
	Refused(ctx context.Context, r run.Run, attempt int, f *fault.Fault) error
}

// Event returns the event of a chunk of a run's output that was accepted at a time.
type Event func(r run.Run, chunk livelog.Frame, at time.Time) events.Envelope

// Intake stores the output that workers send while they run.
type Intake struct {
	workers Workers
	tasks   Tasks
	notes   port.NoteStore
	live    liveLogs
	event   Event
	clock   clock.Clock
}

// NewIntake returns an Intake that stores the output in outputs, and its events in notes. tasks
// are the Tasks of those who follow the output in this process.
func NewIntake(workers Workers, tasks Tasks, notes port.NoteStore, outputs port.Outputs, event Event, c clock.Clock) *Intake {
	return &Intake{workers, tasks, notes, liveLogs{outputs}, event, c}
}

// Answer is the response to a chunk of output.
type Answer struct {
	// At is the time at which the chunk was received.
	At time.Time
	// Cancel is the reason of the cancel request, or nil.
	Cancel *string
	// Followed reports whether a client follows the output.
	Followed bool
}

// Take stores a chunk of a worker's output. It returns when the chunk is durable.
// Refusals: TaskExpired for an attempt that has ended, AttemptMismatch, SequenceConflict,
// and SequenceGap, which wraps a livelog.Gap. A chunk that was accepted before is accepted again. The output of a
// run that keeps no logs is not stored.
func (s *Intake) Take(ctx context.Context, bearer token.Bearer, attempt int, chunk livelog.Frame) (Answer, error) {
	answer := Answer{At: s.clock.Now().UTC().Round(0)}
	switch {
	case attempt < 1:
		return answer, fault.Invalid("attempt", "attempt %d is out of range, want 1 or more", attempt)
	case chunk.Sequence < 0:
		return answer, fault.Invalid("sequence", "sequence %d is negative, want 0 or more", chunk.Sequence)
	}
	r, err := s.workers.SendsOutput(ctx, bearer, attempt)
	if err != nil {
		return answer, err
	}
	if end := r.EndRequest(); end != nil {
		answer.Cancel = &end.Reason
		s.workers.CancelDelivered(ctx, r, attempt)
	}
	if !r.KeepsLogs() {
		return answer, nil
	}
	chunk.At = answer.At.Truncate(time.Millisecond)
	head, err := s.live.add(ctx, r, chunk)
	gap, missing := errors.AsType[*livelog.Gap](err)
	if missing || err == nil && chunk.Sequence <= 1 {
		// The attempt may have ended meanwhile, and its log may be stored without the chunk.
		if over := s.workers.StillSends(ctx, r, attempt); over != nil {
			if len(head.Frames) == 1 && len(head.Segments) == 0 {
				_ = s.live.remove(ctx, r, attempt) // best effort: there is only this chunk
			}
			return answer, over
		}
	}
	if missing {
		return answer, fault.Wrap(gap, fault.SequenceGap, "sequence %d is not the next one: want %d", chunk.Sequence, gap.Want)
	}
	if errors.Is(err, livelog.ErrContradiction) {
		f := fault.New(fault.SequenceConflict, "other output was accepted with sequence %d", chunk.Sequence)
		return answer, s.workers.Refused(ctx, r, attempt, f)
	}
	if err != nil {
		return answer, fmt.Errorf("cannot store the output: %w", err)
	}
	if err := s.noteOutput(ctx, r, head, chunk); err != nil {
		return answer, err
	}
	answer.Followed = head.FollowedUntil.After(answer.At)
	s.tasks.Notify(r.Ref())
	return answer, nil
}

// noteOutput stores the event of an accepted chunk of a program's output. A repeated chunk
// keeps the time of its first acceptance, so its event is the same. The event of a chunk that
// is no longer among the newest was stored before.
func (s *Intake) noteOutput(ctx context.Context, r run.Run, head livelog.Head, chunk livelog.Frame) error {
	place, stored, _ := head.Find(chunk.Sequence)
	if r.Work.Kind != spec.KindJob || place != livelog.Open {
		return nil
	}
	if stored.At.IsZero() { // accepted by an earlier version
		stored.At = r.Attempt.IntentAt
	}
	e, err := s.event(r, stored, stored.At).Fit()
	if err != nil {
		return fmt.Errorf("cannot make the event of the output: %w", err)
	}
	id, err := events.ULID(e.EventID)
	if err != nil {
		return fmt.Errorf("cannot make the event of the output: %w", err)
	}
	document, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("cannot encode the event of the output: %w", err)
	}
	if err := s.notes.AddNotes(ctx, port.Note{Tenant: r.Tenant, ID: id, At: e.OccurredAt, Document: document}); err != nil {
		return fmt.Errorf("cannot store the event of the output: %w", err)
	}
	return nil
}
