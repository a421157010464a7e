package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"golang.org/x/sync/errgroup"
)

// crew runs the calls of one part of a sweep concurrently. With one worker it runs
// them in the caller's goroutine, so that a panic reaches the caller.
type crew struct {
	group    errgroup.Group
	workers  int
	failures *failures
	// begun counts the calls that were started.
	begun int
}

func (s *Sweeper) crew(failed *failures) *crew {
	c := &crew{workers: s.workers, failures: failed}
	c.group.SetLimit(max(s.workers, 1))
	return c
}

// do starts the call with a limit of sweepItemLimit, as soon as a worker is free. It
// does nothing if ctx has ended.
func (c *crew) do(ctx context.Context, call func(context.Context) error) {
	if ctx.Err() != nil {
		return
	}
	c.begun++
	limited := func() error {
		ctx, cancel := context.WithTimeout(ctx, sweepItemLimit)
		defer cancel()
		c.failures.add(call(ctx))
		return nil
	}
	if c.workers > 1 {
		c.group.Go(limited)
	} else {
		_ = limited()
	}
}

func (c *crew) wait() { _ = c.group.Wait() }

// maxFailures is the number of errors that a part of a sweep keeps.
const maxFailures = 20

// failures collects errors; it counts those beyond maxFailures. It is safe for
// concurrent use.
type failures struct {
	mu   sync.Mutex
	kept []error
	more int
}

func (f *failures) add(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.kept) < maxFailures {
		f.kept = append(f.kept, err)
	} else {
		f.more++
	}
}

// join returns the errors with that of ctx.
func (f *failures) join(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := errors.Join(append(f.kept, ctx.Err())...)
	if f.more > 0 {
		err = fmt.Errorf("%w\nand %d more errors", err, f.more)
	}
	return err
}

// marks is a set of texts. It needs eight bytes for each text.
type marks struct {
	seed maphash.Seed
	set  map[uint64]struct{}
}

func newMarks() *marks { return &marks{maphash.MakeSeed(), map[uint64]struct{}{}} }

// add adds a text, and reports whether it was not in the set.
func (m *marks) add(parts ...string) bool {
	key := hashOf(m.seed, parts...)
	_, known := m.set[key]
	m.set[key] = struct{}{}
	return !known
}

func hashOf(seed maphash.Seed, parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, part := range parts {
		_, _ = h.WriteString(part) // never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}
