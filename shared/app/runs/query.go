package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// pollInterval is how often a waiting reader polls for commits of other
// processes.
const pollInterval = time.Second

// Queries reads tasks for clients.
type Queries struct {
	*Records
	heads *capacity.Positions
}

// NewQueries returns the queries on records.
func NewQueries(records *Records) *Queries {
	return &Queries{Records: records, heads: capacity.NewPositions(records.store, records.clock)}
}

// View is a run with its queue position and its last heartbeat, which are not in its record.
type View struct {
	Run run.Run
	// QueuePosition is the number of queued runs ahead of this one, at most
	// limit.QueuePositions. It is -1 if the run is not queued. It may be a second old.
	QueuePosition int
	// Heartbeat is the worker's last heartbeat; nil before the first one and after
	// the worker's end.
	Heartbeat *run.Heartbeat
	// At is the time at which the record was read. If it is zero, the durations of an
	// unfinished run end at its last change.
	At time.Time
}

// Task reads one task of the caller's tenant. NotFound if it does not exist or
// has expired.
func (s *Queries) Task(ctx context.Context, who port.Identity, taskID string) (View, error) {
	r, err := s.find(ctx, who, taskID)
	if err != nil {
		return View{}, err
	}
	return s.view(ctx, r)
}

// AwaitChange is Task, but it waits at most limit until the task ends or its state, attempt or
// queue position changes. It sees commits of this process at once, and those of other processes
// within pollInterval.
func (s *Queries) AwaitChange(ctx context.Context, who port.Identity, taskID string, limit time.Duration) (View, error) {
	if limit <= 0 {
		return s.Task(ctx, who, taskID)
	}
	watch := s.changes.Moves(who.Tenant, taskID)
	defer watch.End()
	first, err := s.Task(ctx, who, taskID)
	if err != nil || first.Run.State.Terminal() {
		return first, err
	}
	watch.Saw(&first.Run)
	timeUp, stop := s.clock.NewTimer(limit)
	defer stop()
	for now := first; ; {
		poll, stopPoll := s.clock.NewTimer(pollInterval)
		over := false
		var moved *run.Run
		select {
		case <-watch.Moved:
			moved = watch.Committed()
		case <-poll:
		case <-timeUp:
			over = true
		case <-ctx.Done():
			over = true
		}
		stopPoll()
		if over {
			return now, nil
		}
		if moved != nil && moved.Version > now.Run.Version { // a read might go to the file while the next commit is under way
			now, err = s.view(ctx, *moved)
		} else {
			now, err = s.Task(ctx, who, taskID)
		}
		if err != nil || now.differs(first) {
			return now, err
		}
	}
}

func (v View) differs(other View) bool {
	return v.Run.State != other.Run.State || v.Run.Attempt.Number != other.Run.Attempt.Number ||
		v.QueuePosition != other.QueuePosition
}

// TaskPage is a page of tasks. Next is the cursor of the next page; empty on the last one.
type TaskPage struct {
	Views []View
	Next  string
	// Until is the creation time of the last task that was read for the page, or zero. The
	// page has all selected tasks that were created after it.
	Until time.Time
}

// Tasks reads a page of the caller's tasks that a filter selects, newest first. A page may have
// fewer tasks than its limit although more follow; next is empty only on the last page.
func (s *Queries) Tasks(ctx context.Context, who port.Identity, page port.Page, filter Filter) (TaskPage, error) {
	found, err := s.selected(ctx, who.Tenant, page, filter)
	if err != nil {
		return TaskPage{}, err
	}
	tasks := TaskPage{Views: make([]View, 0, len(found.runs)), Next: found.next, Until: found.until}
	for _, r := range found.runs {
		v, err := s.view(ctx, *r)
		if err != nil {
			return TaskPage{}, err
		}
		tasks.Views = append(tasks.Views, v)
	}
	return tasks, nil
}

// Events reads at most limit (1 to 1000) events of a task with a number above
// after. more reports whether there are further ones.
func (s *Queries) Events(
	ctx context.Context, who port.Identity, taskID string, after, limit int,
) (r run.Run, events []run.Event, more bool, err error) {
	if r, err = s.find(ctx, who, taskID); err != nil {
		return r, nil, false, err
	}
	events, err = s.store.Events(ctx, r.Ref(), after, limit+1)
	if err != nil {
		return r, nil, false, fmt.Errorf("cannot read the events: %w", err)
	}
	more = len(events) > limit
	return r, events[:min(len(events), limit)], more, nil
}

// History reads a run with all of its events.
func (s *Queries) History(ctx context.Context, who port.Identity, taskID string) (r run.Run, events []run.Event, err error) {
	if r, err = s.find(ctx, who, taskID); err != nil {
		return r, nil, err
	}
	const page = 1000
	for {
		found, err := s.store.Events(ctx, r.Ref(), len(events), page)
		if err != nil {
			return r, nil, fmt.Errorf("cannot read the events: %w", err)
		}
		if events = append(events, found...); len(found) < page {
			return r, events, nil
		}
	}
}

func (s *Queries) view(ctx context.Context, r run.Run) (View, error) {
	v := View{Run: r, QueuePosition: -1, At: s.now()}
	if r.State == run.Running && r.Attempt.WorkerID != "" {
		heartbeat, err := s.store.LastHeartbeat(ctx, r.Ref())
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			return v, fmt.Errorf("cannot read the last heartbeat: %w", err)
		}
		if err == nil {
			v.Heartbeat = &heartbeat
		}
	}
	if !r.Queued() && !r.AwaitsKey() && !r.AwaitsJobSlot() {
		return v, nil
	}
	var err error
	if v.QueuePosition, err = s.heads.Of(ctx, r); err != nil {
		return v, fmt.Errorf("cannot read the queue position: %w", err)
	}
	return v, nil
}
