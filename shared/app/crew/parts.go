package crew

import (
	"context"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Parts runs the parts of sweeps: it shares the time among them, and remembers where each of
// them continues. It is safe for concurrent use.
type Parts struct {
	clock       clock.Clock
	workers     int
	expiryPause time.Duration

	mu     sync.Mutex
	starts map[string]Position
	// rests has the time until which a part that found no records is skipped.
	rests map[string]time.Time
}

// NewParts returns the parts of sweeps. workers limits the concurrent calls. A part that found no
// records is skipped for expiryPause.
func NewParts(c clock.Clock, workers int, expiryPause time.Duration) *Parts {
	return &Parts{clock: c, workers: workers, expiryPause: expiryPause, starts: map[string]Position{}, rests: map[string]time.Time{}}
}

// Crew returns a crew for calls of a part. failed gets their errors.
func (s *Parts) Crew(failed *Failures) *Crew { return New(s.workers, failed) }

// Position is where a part of the sweep continues.
type Position struct {
	// after is the cursor of a page.
	after string
	// turn rotates the order within pages; it grows each time the part ends early.
	Turn int
}

// UnlessResting runs a part, unless the part found no records less than expiryPause ago. do
// returns the number of records found.
func (s *Parts) UnlessResting(part string, do func() (found int, err error)) error {
	now := clock.UTC(s.clock)
	s.mu.Lock()
	rests := now.Before(s.rests[part])
	s.mu.Unlock()
	if rests {
		return nil
	}
	found, err := do()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rests, part)
	if found == 0 && err == nil {
		s.rests[part] = now.Add(s.expiryPause)
	}
	return err
}

// InShare runs a part in one of n shares of the remaining time.
func (s *Parts) InShare(ctx context.Context, n int, part func(context.Context) error) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return part(ctx)
	}
	now := clock.UTC(s.clock)
	ctx, cancel := context.WithDeadline(ctx, now.Add(deadline.Sub(now)/time.Duration(n)))
	defer cancel()
	return part(ctx)
}

// StartOf returns where a part continues.
func (s *Parts) StartOf(part string) Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts[part]
}

// StartNext stores where a part continues in the next sweep.
func (s *Parts) StartNext(part string, at Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts[part] = at
}

// EachRef calls do for the runs of all pages, each at most once. It begins where the last
// sweep ended.
func (s *Parts) EachRef(
	ctx context.Context, part string,
	read func(after string) (refs []run.Ref, next string, err error), do func(ctx context.Context, ref run.Ref) error,
) error {
	at := s.StartOf(part)
	visited := NewTextSet()
	var failed Failures
	for {
		refs, next, err := read(at.after)
		if err != nil {
			s.StartNext(part, Position{Turn: at.Turn})
			failed.Add(err)
			return failed.Join(ctx)
		}
		page := s.Crew(&failed)
		for i := range refs {
			ref := refs[(i+at.Turn)%len(refs)]
			if visited.Add(ref.Tenant, ref.ID) {
				page.Do(ctx, func(ctx context.Context) error { return do(ctx, ref) })
			}
		}
		page.Wait()
		at.after = next
		if ctx.Err() != nil {
			at.Turn += max(page.Begun(), 1)
		}
		if next == "" || ctx.Err() != nil {
			s.StartNext(part, at)
			return failed.Join(ctx)
		}
	}
}
