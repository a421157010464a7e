package children

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/app/items"
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
	runs  Runs
	store port.RunStore
	lists *items.Lists
	clock clock.Clock
	log   *slog.Logger
	mu    sync.Mutex
	// open are the batches that wait for their turn, by parent.
	open map[run.Ref]*batch
	seed maphash.Seed
	// turns lets one batch of a parent commit at a time. Parents share the locks.
	turns [64]sync.Mutex
}

// New returns Children.
func New(runs Runs, store port.RunStore, lists *items.Lists, c clock.Clock, log *slog.Logger) *Children {
	return &Children{runs: runs, store: store, lists: lists, clock: c, log: log, open: map[run.Ref]*batch{}, seed: maphash.MakeSeed()}
}

// Expire removes the lists of items that no run uses any more, at most most parts. It returns how
// many it found.
func (s *Children) Expire(ctx context.Context, most int) (found int, err error) {
	return s.lists.Expire(ctx, most)
}

// batch has ends of children of one parent, which one commit counts.
type batch struct {
	once sync.Once
	ends []fan.ChildEnd
	err  error
}

// turn is the work on one parent in the call that has its lock. Effects of its commits that concern
// the same parent are added to it.
type turn struct {
	ref  run.Ref
	mu   sync.Mutex
	ends []fan.ChildEnd
	// check: all active children are to be looked at.
	check bool
}

type turnKey struct{}

func (t *turn) add(check bool, ends ...fan.ChildEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends, t.check = append(t.ends, ends...), t.check || check
}

func (t *turn) take() (ends []fan.ChildEnd, check bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ends, check = t.ends, t.check
	t.ends, t.check = nil, false
	return ends, check
}

// inTurn adds work to the turn of ctx; false if ctx has none of this parent.
func inTurn(ctx context.Context, ref run.Ref, check bool, ends ...fan.ChildEnd) bool {
	t, ok := ctx.Value(turnKey{}).(*turn)
	if !ok || t.ref != ref {
		return false
	}
	t.add(check, ends...)
	return true
}

// Ended counts a child that has ended, and starts the next ones.
func (s *Children) Ended(ctx context.Context, child run.Run) error {
	end, ended := child.ChildEnd()
	if child.Child == nil || child.Child.Parent == "" || !ended {
		return nil
	}
	ref := run.Ref{Tenant: child.Tenant, ID: child.Child.Parent}
	e := fan.ChildEnd{Number: child.Child.Number, End: end}
	if inTurn(ctx, ref, false, e) {
		return nil
	}
	b := s.join(ref, e)
	b.once.Do(func() { b.err = s.commit(ctx, ref, b) })
	return b.err
}

// join adds an end to the open batch of a parent.
func (s *Children) join(ref run.Ref, e fan.ChildEnd) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.open[ref]
	if b == nil {
		b = &batch{}
		s.open[ref] = b
	}
	b.ends = append(b.ends, e)
	return b
}

func (s *Children) commit(ctx context.Context, ref run.Ref, b *batch) error {
	turns := &s.turns[maphash.String(s.seed, ref.ID)%uint64(len(s.turns))]
	turns.Lock()
	defer turns.Unlock()
	s.mu.Lock()
	delete(s.open, ref)
	s.mu.Unlock()
	return s.advance(ctx, ref, &turn{ref: ref, ends: b.ends})
}

// Reconcile looks at all active children of a run: it creates those that have no run, counts those
// that have ended, and cancels them if the run has stopped.
func (s *Children) Reconcile(ctx context.Context, ref run.Ref) error {
	if inTurn(ctx, ref, true) {
		return nil
	}
	return s.advance(ctx, ref, &turn{ref: ref, check: true})
}

// advance does the work of a turn, and what follows from it.
func (s *Children) advance(ctx context.Context, ref run.Ref, t *turn) error {
	ctx = context.WithValue(ctx, turnKey{}, t)
	for ctx.Err() == nil {
		ends, check := t.take()
		if len(ends) == 0 && !check {
			return nil
		}
		r, err := s.store.Load(ctx, ref)
		if errors.Is(err, port.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the parent: %w", err)
		}
		if r.Fan == nil {
			return nil
		}
		fact := run.ChildrenEnded{Ends: ends}
		if check {
			found, err := s.inspect(ctx, r)
			if err != nil {
				return err
			}
			more, _ := t.take()
			fact.Ends, fact.Verified = slices.Concat(ends, more, found), r.Fan.Started
		}
		after, err := s.runs.Apply(ctx, r, fact)
		if err != nil {
			return fmt.Errorf("cannot count the children of run %s: %w", ref.ID, err)
		}
		if err := s.start(ctx, after, newActive(r, after)); err != nil {
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

// parallel is how many children are created or read at a time.
const parallel = 8

// start creates children. Ends of those that could not be created are added to the turn of ctx.
// The next check of the parent creates those that failed.
func (s *Children) start(ctx context.Context, r run.Run, numbers []int) error {
	if len(numbers) == 0 {
		return nil
	}
	list, err := s.lists.Load(ctx, r.Tenant, r.Work.Fan.List)
	if err != nil {
		return err
	}
	return each(ctx, numbers, func(ctx context.Context, n int) error { return s.create(ctx, r, list, n) })
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
		inTurn(ctx, r.Ref(), false, fan.ChildEnd{Number: n, End: end})
	}
	return nil
}

// each calls do for each number, at most parallel at a time. It returns the joined errors.
func each(ctx context.Context, numbers []int, do func(ctx context.Context, n int) error) error {
	if len(numbers) == 1 {
		return do(ctx, numbers[0])
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	var mu sync.Mutex
	var failed []error
	for _, n := range numbers {
		group.Go(func() error {
			if err := do(ctx, n); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(failed...)
}

// inspect returns the ends of the active children of a run. It creates those without a run, and
// cancels them if the run has stopped.
func (s *Children) inspect(ctx context.Context, r run.Run) (ends []fan.ChildEnd, err error) {
	cancels := r.State.Terminal() || r.Work.Fan.CancelsActive(*r.Fan)
	var list []fan.Item
	if len(r.Fan.Active) > 0 {
		if list, err = s.lists.Load(ctx, r.Tenant, r.Work.Fan.List); err != nil {
			return nil, err
		}
	}
	var mu sync.Mutex
	err = each(ctx, r.Fan.Active, func(ctx context.Context, n int) error {
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
		inTurn(ctx, r.Ref(), false, fan.ChildEnd{Number: n, End: end})
		return nil
	}
	return fault.New(fault.Unavailable, "child %d of run %s was created meanwhile", n, r.ID) // the next check cancels it
}
