package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// statusPause is how long a waiting reader relies on being told before it looks
// again by itself: commits of other processes are not told.
const statusPause = time.Second

// View is a run as it is shown, with what its record does not hold.
type View struct {
	Run run.Run
	// QueuePosition counts who stands before it in line; -1 where it is in none.
	QueuePosition int
	// Beat is what the worker told last; nil where it has not, or has ended.
	Heartbeat *run.Heartbeat
}

// Task reads one task of the caller's tenant. NotFound where it never was, or
// has expired.
func (s *Service) Task(ctx context.Context, who port.Identity, taskID string) (View, error) {
	r, err := s.find(ctx, who, taskID)
	if err != nil {
		return View{}, err
	}
	return s.view(ctx, r)
}

// AwaitChange is Task, but while the run has not ended it waits, at most limit,
// until its state, attempt or queue position is another than at first.
func (s *Service) AwaitChange(ctx context.Context, who port.Identity, taskID string, limit time.Duration) (View, error) {
	first, err := s.Task(ctx, who, taskID)
	if err != nil || limit <= 0 || first.Run.State.Terminal() {
		return first, err
	}
	timeUp, stop := s.ports.Clock.NewTimer(limit)
	defer stop()
	for {
		told, giveUp := s.changes.watch(first.Run.Ref())
		now, err := s.Task(ctx, who, taskID)
		if err != nil || now.differs(first) {
			giveUp()
			return now, err
		}
		again, stopAgain := s.ports.Clock.NewTimer(statusPause)
		over := false
		select {
		case <-told:
		case <-again:
		case <-timeUp:
			over = true
		case <-ctx.Done():
			over = true
		}
		stopAgain()
		giveUp()
		if over {
			return now, nil
		}
	}
}

func (v View) differs(other View) bool {
	return v.Run.State != other.Run.State || v.Run.Attempt.Number != other.Run.Attempt.Number ||
		v.QueuePosition != other.QueuePosition
}

// Tasks reads a page of the caller's tasks, the newest first.
func (s *Service) Tasks(ctx context.Context, who port.Identity, page port.Page) (views []View, next string, err error) {
	runs, next, err := s.ports.Store.List(ctx, who.Tenant, page)
	if err != nil {
		return nil, "", fmt.Errorf("cannot list the tasks: %w", err)
	}
	views = make([]View, 0, len(runs))
	for _, r := range runs {
		v, err := s.view(ctx, r)
		if err != nil {
			return nil, "", err
		}
		views = append(views, v)
	}
	return views, next, nil
}

// Events reads a task's events with a number above after, at most limit (1 to
// 1000) of them. more says whether there are further ones.
func (s *Service) Events(ctx context.Context, who port.Identity, taskID string, after, limit int) (events []run.Event, more bool, err error) {
	r, err := s.find(ctx, who, taskID)
	if err != nil {
		return nil, false, err
	}
	events, err = s.ports.Store.Events(ctx, r.Ref(), after, limit+1)
	if err != nil {
		return nil, false, fmt.Errorf("cannot read the events: %w", err)
	}
	if len(events) > limit {
		return events[:limit], true, nil
	}
	return events, false, nil
}

func (s *Service) find(ctx context.Context, who port.Identity, taskID string) (run.Run, error) {
	r, err := s.ports.Store.Find(ctx, who.Tenant, taskID)
	if errors.Is(err, port.ErrNotFound) {
		return run.Run{}, fault.New(fault.NotFound, "there is no such task, or it has expired")
	}
	if err != nil {
		return run.Run{}, fmt.Errorf("cannot find the task: %w", err)
	}
	return r, nil
}

func (s *Service) view(ctx context.Context, r run.Run) (View, error) {
	v := View{Run: r, QueuePosition: -1}
	if r.State == run.Running && r.Attempt.WorkerID != "" {
		heartbeat, err := s.ports.Store.LastHeartbeat(ctx, r.Ref())
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			return v, fmt.Errorf("cannot read the last heartbeat: %w", err)
		}
		if err == nil {
			v.Heartbeat = &heartbeat
		}
	}
	if r.State != run.Pending || r.Slot.State != run.SlotQueued {
		return v, nil
	}
	position, err := s.ports.Store.Position(ctx, r)
	switch {
	case errors.Is(err, port.ErrNotFound): // it was granted its slot meanwhile
	case err != nil:
		return v, fmt.Errorf("cannot read the queue position: %w", err)
	default:
		v.QueuePosition = position
	}
	return v, nil
}
