package runs

import (
	"context"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/app/crew"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// sweepParts runs the parts of sweeps: it shares the time among them, and remembers where each of
// them continues. It is safe for concurrent use.
type sweepParts struct {
	clock       clock.Clock
	workers     int
	expiryPause time.Duration

	mu     sync.Mutex
	starts map[string]sweepPosition
	// rests has the time until which a part that found no records is skipped.
	rests map[string]time.Time
}

// sweepPosition is where a part of the sweep continues.
type sweepPosition struct {
	// after is the cursor of a page.
	after string
	// turn rotates the order within pages; it grows each time the part ends early.
	turn int
}

// unlessResting runs a part, unless the part found no records less than expiryPause ago. do
// returns the number of records found.
func (s *sweepParts) unlessResting(part string, do func() (found int, err error)) error {
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

// inShare runs a part in one of n shares of the remaining time.
func (s *sweepParts) inShare(ctx context.Context, n int, part func(context.Context) error) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return part(ctx)
	}
	now := clock.UTC(s.clock)
	ctx, cancel := context.WithDeadline(ctx, now.Add(deadline.Sub(now)/time.Duration(n)))
	defer cancel()
	return part(ctx)
}

// startOf returns where a part continues.
func (s *sweepParts) startOf(part string) sweepPosition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts[part]
}

func (s *sweepParts) startNext(part string, at sweepPosition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts[part] = at
}

// sweepRefs calls do for the runs of all pages, each at most once. It begins where the last
// sweep ended.
func (s *sweepParts) sweepRefs(
	ctx context.Context, part string,
	read func(after string) (refs []run.Ref, next string, err error), do func(ctx context.Context, ref run.Ref) error,
) error {
	at := s.startOf(part)
	visited := crew.NewTextSet()
	var failed crew.Failures
	for {
		refs, next, err := read(at.after)
		if err != nil {
			s.startNext(part, sweepPosition{turn: at.turn})
			failed.Add(err)
			return failed.Join(ctx)
		}
		page := crew.New(s.workers, &failed)
		for i := range refs {
			ref := refs[(i+at.turn)%len(refs)]
			if visited.Add(ref.Tenant, ref.ID) {
				page.Do(ctx, func(ctx context.Context) error { return do(ctx, ref) })
			}
		}
		page.Wait()
		at.after = next
		if ctx.Err() != nil {
			at.turn += max(page.Begun(), 1)
		}
		if next == "" || ctx.Err() != nil {
			s.startNext(part, at)
			return failed.Join(ctx)
		}
	}
}
