// Package crew runs the calls of a sweep: concurrently, each with a time limit, and with the first
// of their errors. It compares the machines that a runner lists with those of the runs.
package crew

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// ItemLimit bounds the calls of a sweep about one record or machine.
const ItemLimit = 10 * time.Second

// Crew runs the calls of one part of a sweep concurrently. With one worker it runs
// them in the caller's goroutine, so that a panic reaches the caller.
type Crew struct {
	group    errgroup.Group
	workers  int
	failures *Failures
	begun    int
}

// New returns a Crew that makes at most workers calls at a time and adds their errors to failed.
// 0 and 1 workers make them in the caller's goroutine.
func New(workers int, failed *Failures) *Crew {
	c := &Crew{workers: workers, failures: failed}
	c.group.SetLimit(max(workers, 1))
	return c
}

// Do waits for a free worker and starts the call with a time limit of ItemLimit. It does nothing if
// ctx has ended.
func (c *Crew) Do(ctx context.Context, call func(context.Context) error) {
	if ctx.Err() != nil {
		return
	}
	c.begun++
	limited := func() error {
		ctx, cancel := context.WithTimeout(ctx, ItemLimit)
		defer cancel()
		c.failures.Add(call(ctx))
		return nil
	}
	if c.workers > 1 {
		c.group.Go(limited)
	} else {
		_ = limited()
	}
}

// Wait returns when the calls have ended.
func (c *Crew) Wait() { _ = c.group.Wait() }

// Begun returns the number of calls that were started.
func (c *Crew) Begun() int { return c.begun }

// maxFailures is the number of errors that a part of a sweep keeps.
const maxFailures = 20

// Failures collects errors; it counts those beyond maxFailures. It is safe for
// concurrent use.
type Failures struct {
	mu   sync.Mutex
	errs []error
	more int
}

// Add adds an error; nil adds nothing.
func (f *Failures) Add(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errs) < maxFailures {
		f.errs = append(f.errs, err)
	} else {
		f.more++
	}
}

// Join returns the errors with that of ctx.
func (f *Failures) Join(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := errors.Join(append(f.errs, ctx.Err())...)
	if f.more > 0 {
		err = fmt.Errorf("%w\nand %d more errors", err, f.more)
	}
	return err
}

// TextSet is a set of texts. It needs eight bytes for each text.
type TextSet struct {
	seed maphash.Seed
	set  map[uint64]struct{}
}

// NewTextSet returns an empty set.
func NewTextSet() *TextSet { return &TextSet{maphash.MakeSeed(), map[uint64]struct{}{}} }

// Add adds a text, and reports whether it was not in the set.
func (m *TextSet) Add(parts ...string) bool {
	key := HashOf(m.seed, parts...)
	_, known := m.set[key]
	m.set[key] = struct{}{}
	return !known
}

// HashOf returns the hash of texts.
func HashOf(seed maphash.Seed, parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, part := range parts {
		_, _ = h.WriteString(part) // never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}
