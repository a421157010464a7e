package children

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/sortie-dev/sortie/shared/app/items"
	"github.com/sortie-dev/sortie/shared/base/batch"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Runs are the runs of the children and their parents. All methods are safe for concurrent use.
type Runs interface {
	// Apply commits a fact about a run that was just read, and acts on it. It returns the newest
	// record.
	Apply(ctx context.Context, r run.Run, f run.Fact) (run.Run, error)
	// CreateChild stores a new run with its ids. If it cannot join its pool, it is skipped. If it
	// exists, CreateChild returns it as it is stored.
	CreateChild(ctx context.Context, r run.Run) (run.Run, error)
}

// Children has the children of runs. It is safe for concurrent use.
type Children struct {
	runs    Runs
	store   port.RunStore
	lists   *items.Lists
	clock   clock.Clock
	log     *slog.Logger
	workers int
	mu      sync.Mutex
	// turns has the calls that are at work, by parent.
	turns map[run.Ref]*turn
}

// New returns Children that create or read at most workers children at a time. 0 and 1 workers do
// it in the caller's goroutine.
func New(runs Runs, store port.RunStore, lists *items.Lists, c clock.Clock, log *slog.Logger, workers int) *Children {
	return &Children{runs: runs, store: store, lists: lists, clock: c, log: log, workers: workers, turns: map[run.Ref]*turn{}}
}

// Expire removes the lists of items that no run uses any more, at most most parts. It returns how
// many it found.
func (s *Children) Expire(ctx context.Context, most int) (found int, err error) {
	return s.lists.Expire(ctx, most)
}

// turn is the work on one parent. One call does it; the others of the process add to it.
type turn struct {
	ends []fan.ChildEnd
	// check: all active children are to be looked at.
	check bool
}

// Ended counts a child that has ended, and starts the next ones. If another call is at work on the
// parent, that call counts it.
func (s *Children) Ended(ctx context.Context, child run.Run) error {
	end, ended := child.ChildEnd()
	if child.Child == nil || child.Child.Parent == "" || !ended {
		return nil
	}
	return s.work(ctx, run.Ref{Tenant: child.Tenant, ID: child.Child.Parent}, turn{ends: []fan.ChildEnd{{Number: child.Child.Number, End: end}}})
}

// Reconcile looks at all active children of a run: it creates those that have no run, counts those
// that have ended, and cancels them if the run has stopped.
func (s *Children) Reconcile(ctx context.Context, ref run.Ref) error {
	return s.work(ctx, ref, turn{check: true})
}

// work adds work to the turn of a parent, and does it unless another call does.
func (s *Children) work(ctx context.Context, ref run.Ref, more turn) error {
	s.mu.Lock()
	if t := s.turns[ref]; t != nil {
		t.ends, t.check = append(t.ends, more.ends...), t.check || more.check
		s.mu.Unlock()
		return nil
	}
	own := &more
	s.turns[ref] = own
	s.mu.Unlock()
	defer func() { // also after a panic; the check of the parent does what is left
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.turns[ref] == own {
			delete(s.turns, ref)
		}
	}()
	return s.advance(ctx, ref)
}

// add adds ends to the turn of a parent that is at work.
func (s *Children) add(ref run.Ref, ends ...fan.ChildEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.turns[ref]; t != nil {
		t.ends = append(t.ends, ends...)
	}
}

// take returns the work of a turn. Without any, it ends the turn.
func (s *Children) take(ref run.Ref) (t turn, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.turns[ref]
	if held == nil || len(held.ends) == 0 && !held.check {
		delete(s.turns, ref)
		return turn{}, false
	}
	t = *held
	*held = turn{}
	return t, true
}

// advance does the work of a turn, and what follows from it.
func (s *Children) advance(ctx context.Context, ref run.Ref) error {
	for ctx.Err() == nil {
		t, ok := s.take(ref)
		if !ok {
			return nil
		}
		r, err := s.store.Load(ctx, ref)
		if errors.Is(err, port.ErrNotFound) || err == nil && r.Fan == nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read the parent: %w", err)
		}
		fact := run.ChildrenEnded{Ends: t.ends}
		var unchecked error
		if t.check {
			var found []fan.ChildEnd
			if found, unchecked = s.inspect(ctx, r); unchecked == nil {
				fact.Verified = r.Fan.Started
			}
			fact.Ends = append(fact.Ends, found...)
		}
		after, err := s.runs.Apply(ctx, r, fact)
		if err != nil {
			return errors.Join(unchecked, fmt.Errorf("cannot count the children of run %s: %w", ref.ID, err))
		}
		if err := errors.Join(unchecked, s.start(ctx, after, newActive(r, after))); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// newActive returns the numbers of the children that have started since r.
func newActive(r, after run.Run) (numbers []int) {
	for _, n := range after.Fan.Active {
		if n >= r.Fan.Started {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// start creates children. Ends of those that could not be created are added to the turn.
// The next check of the parent creates those that failed.
func (s *Children) start(ctx context.Context, r run.Run, numbers []int) error {
	if len(numbers) == 0 {
		return nil
	}
	list, err := s.lists.Load(ctx, r.Tenant, r.Work.Fan.List)
	if err != nil {
		return err
	}
	return s.each(ctx, numbers, func(ctx context.Context, n int) error { return s.create(ctx, r, list, n) })
}

func (s *Children) create(ctx context.Context, r run.Run, list []fan.Item, n int) error {
	if n >= len(list) {
		return fmt.Errorf("run %s has no item %d", r.ID, n)
	}
	child, err := s.runs.CreateChild(ctx, r.ChildOf(n, list[n], clock.UTC(s.clock)))
	if err != nil {
		return fmt.Errorf("cannot create child %d of run %s: %w", n, r.ID, err)
	}
	if end, ended := child.ChildEnd(); ended {
		s.add(r.Ref(), fan.ChildEnd{Number: n, End: end})
	}
	return nil
}

// each calls do for each number, at most s.workers at a time.
func (s *Children) each(ctx context.Context, numbers []int, do func(ctx context.Context, n int) error) error {
	return errors.Join(batch.Each(s.workers, numbers, func(n int) error { return do(ctx, n) })...)
}

// inspect returns the ends of the active children of a run. It creates those without a run, and
// cancels them if the run has stopped. With an error, it returns the ends that it has seen.
func (s *Children) inspect(ctx context.Context, r run.Run) (ends []fan.ChildEnd, err error) {
	cancels := r.State.Terminal() || r.Work.Fan.CancelsActive(*r.Fan)
	var list []fan.Item
	if len(r.Fan.Active) > 0 {
		if list, err = s.lists.Load(ctx, r.Tenant, r.Work.Fan.List); err != nil {
			return nil, err
		}
	}
	var mu sync.Mutex
	err = s.each(ctx, r.Fan.Active, func(ctx context.Context, n int) error {
		child, err := s.store.Load(ctx, run.Ref{Tenant: r.Tenant, ID: fan.RunID(r.ID, n)})
		switch {
		case errors.Is(err, port.ErrNotFound) && n < r.Fan.Verified:
			// Its record has expired, or was lost: it must not run again.
			s.log.ErrorContext(ctx, "a child has no record any more and counts as failed", "run_id", r.ID, "child", n)
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, fan.ChildEnd{Number: n, End: fan.Failed})
			return nil
		case errors.Is(err, port.ErrNotFound) && cancels:
			return s.skip(ctx, r, list, n)
		case errors.Is(err, port.ErrNotFound):
			return s.create(ctx, r, list, n)
		case err != nil:
			return fmt.Errorf("cannot read child %d of run %s: %w", n, r.ID, err)
		}
		if !child.State.Terminal() && cancels && child.Cancel == nil {
			reason := fmt.Sprintf("run %s has stopped: %s", r.ID, r.Fan.Stopped)
			if child, err = s.runs.Apply(ctx, child, run.CancelRequested{By: "job:" + r.JobID, Reason: reason}); err != nil {
				return fmt.Errorf("cannot cancel child %d of run %s: %w", n, r.ID, err)
			}
		}
		if end, ended := child.ChildEnd(); ended {
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, fan.ChildEnd{Number: n, End: end})
		}
		return nil
	})
	return ends, err
}

// skip creates a child of a stopped run as a skipped run, so that no other process creates it.
func (s *Children) skip(ctx context.Context, r run.Run, list []fan.Item, n int) error {
	if n >= len(list) {
		return fmt.Errorf("run %s has no item %d", r.ID, n)
	}
	child := r.ChildOf(n, list[n], clock.UTC(s.clock))
	child.Missed = &run.Missed{Reason: run.SkipUpstreamCancelled, Count: 1, Until: r.Scheduled(), By: run.JobRun{JobID: r.JobID, RunID: r.ID}}
	child, err := s.runs.CreateChild(ctx, child)
	if err != nil {
		return fmt.Errorf("cannot skip child %d of run %s: %w", n, r.ID, err)
	}
	if end, ended := child.ChildEnd(); ended {
		s.add(r.Ref(), fan.ChildEnd{Number: n, End: end})
		return nil
	}
	return fault.New(fault.Unavailable, "child %d of run %s was created meanwhile", n, r.ID) // the next check cancels it
}
