package inferences

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// ErrAllRead reports that the reader already has the last event of an ended stream.
var ErrAllRead = errors.New("the reader has the last event of the stream")

// Follow calls each with the events of the stream of a task after an id, in order, until the
// last one. It calls each with nil after every 15 s without an event. It returns an error of
// each. If no event can follow the id, it returns ErrAllRead without a call of begin. Faults:
// NotFound as for Queries.Task, NotStreamable, CursorExpired if the stream has expired before
// the task.
func (s *Inference) Follow(
	ctx context.Context, who port.Identity, taskID string, after inference.EventID, begin func(run.Run) error, each func([]inference.Event) error,
) error {
	of, err := s.beginFollow(ctx, who, taskID, &after, begin)
	if of.entered {
		defer s.readers.leave(of.ref)
	}
	if err != nil {
		return err
	}
	return s.follow(ctx, of, after, each)
}

// streamFollower is a reader of the stream of a task. It waits most of the time, so it does not
// keep the record of the run, which is large.
type streamFollower struct {
	ref            run.Ref
	taskID, stream string
	// entered: it counts among the readers of the task.
	entered bool
	// createdAt is when this process has created the task; zero if another call has.
	createdAt time.Time
}

func readerOf(r run.Run) streamFollower {
	return streamFollower{ref: r.Ref(), taskID: r.TaskID, stream: inference.StreamOf(r.Tenant, r.TaskID)}
}

// enter counts the reader among the readers of the task.
func (s *Inference) enter(ctx context.Context, of *streamFollower) error {
	err := s.readers.enter(ctx, of.ref)
	of.entered = err == nil
	return err
}

// beginFollow checks the request of a reader, counts it and calls begin. After a crash of the
// host that has lost the end of the stream, a reader may have more records than the stream. It
// continues with the next record or, if the stream has ended, with the last one.
func (s *Inference) beginFollow(
	ctx context.Context, who port.Identity, taskID string, after *inference.EventID, begin func(run.Run) error,
) (of *streamFollower, err error) {
	of = &streamFollower{}
	r, err := s.runs.Find(ctx, who, taskID)
	if err == nil && r.HidesAnswer() {
		err = hidden()
	}
	if err != nil {
		return of, err
	}
	*of = readerOf(r)
	if r.Work.Inference == nil {
		return of, fault.New(fault.NotStreamable, "a task of kind %s has no stream of tokens; GET /v1/tasks/%s/logs?follow=true has its output", r.Work.Kind, r.TaskID)
	}
	head, state, err := s.answers.Read(ctx, r)
	if err != nil {
		return of, err
	}
	switch {
	case state.Ended && after.Position == head.Newest && after.N > 0:
		return of, ErrAllRead // the last record is one event
	case state.Ended && after.Position > head.Newest:
		*after = inference.EventID{Position: head.Newest}
	case after.Position > head.Newest+1:
		*after = inference.EventID{Position: head.Newest + 1}
	}
	// If the task has an answer, a stream without a head has expired.
	if head.Newest > 0 && head.Oldest > after.Position+1 || head.Newest == 0 && r.State == run.Completed {
		return of, fault.New(fault.CursorExpired, "the stream of the task has expired; its transcript is an artifact of kind trace")
	}
	if err := s.enter(ctx, of); err != nil {
		return of, err
	}
	return of, begin(r)
}

func (s *Inference) follow(ctx context.Context, of *streamFollower, after inference.EventID, each func([]inference.Event) error) error {
	return s.answers.Follow(ctx, of.stream, after, &answer.Reader{
		IdleAt:  of.createdAt,
		Idle:    func(ctx context.Context) error { return s.answers.EnsureEnd(ctx, s.store, of.ref) },
		Settled: func(ctx context.Context) error { return s.settled(ctx, of.ref) },
		Each:    each,
	})
}

const (
	// settleTime is the maximum time for which a reader waits for the last event while the task
	// holds a part of its budgets: the dispatcher may be gone.
	settleTime = 5 * time.Second
	// settleLook is the interval of polling for commits of other processes.
	settleLook = 100 * time.Millisecond
)

// settled waits, at most settleTime, until a task whose stream has ended holds no part of its
// budgets. So a client that has the last event can submit its next task.
func (s *Inference) settled(ctx context.Context, ref run.Ref) error {
	for until := s.now().Add(settleTime); ; {
		changed, end := s.runs.Watch(ref)
		r, err := s.store.Load(ctx, ref)
		if errors.Is(err, port.ErrNotFound) || err == nil && !r.Reserves() || !s.now().Before(until) {
			end()
			return nil
		}
		timer, stop := s.clock.NewTimer(settleLook)
		select {
		case <-changed:
		case <-timer:
		case <-ctx.Done():
		}
		stop()
		end()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
