// Package timer wakes jobs by timers of this process. The wake-ups are in memory. After a
// restart the sweep sets them again from the stored jobs. A wake-up is removed when its call
// succeeds. Until then it is delivered again after a short delay.
package timer

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/port"
)

// longest limits a wait for the next wake-up. The timers of the host continue while its clock
// is set, and stop while the host is suspended.
const longest = 10 * time.Second

// Schedules implements port.Schedules with timers. It is safe for concurrent use.
type Schedules struct {
	clock clock.Clock

	mu sync.Mutex
	// wakeUps has the wake-up of each job. queue also has replaced wake-ups.
	wakeUps map[job.Ref]time.Time
	queue   queue
	// failed counts the failed calls of each job since the last successful one.
	failed  map[job.Ref]int
	changed chan struct{}
}

var _ port.Schedules = (*Schedules)(nil)

// New returns Schedules without a wake-up. Run delivers them.
func New(c clock.Clock) *Schedules {
	return &Schedules{clock: c, wakeUps: map[job.Ref]time.Time{}, failed: map[job.Ref]int{}, changed: make(chan struct{}, 1)}
}

// Set implements port.Schedules. It does not fail.
func (s *Schedules) Set(_ context.Context, ref job.Ref, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(ref, at)
	return nil
}

// set is like Set. The lock is held.
func (s *Schedules) set(ref job.Ref, at time.Time) {
	if s.wakeUps[ref].Equal(at) {
		return
	}
	s.wakeUps[ref] = at
	heap.Push(&s.queue, wakeUp{ref, at})
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Precision implements port.Schedules. A wake-up is delivered at its time.
func (s *Schedules) Precision() time.Duration { return 0 }

// Remove implements port.Schedules. It does not fail.
func (s *Schedules) Remove(_ context.Context, ref job.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wakeUps, ref)
	return nil
}

// Run calls wake for each due wake-up until ctx ends. most limits the concurrent calls. A wake-up
// whose call fails is delivered again. Run returns when all calls have returned.
func (s *Schedules) Run(ctx context.Context, most int, wake func(context.Context, job.Ref) error) {
	var calls sync.WaitGroup
	defer calls.Wait()
	busy := make(chan struct{}, most)
	for ctx.Err() == nil {
		due, wait := s.next()
		if len(due) == 0 {
			s.await(ctx, wait)
		}
		for _, ref := range due {
			select {
			case busy <- struct{}{}:
			case <-ctx.Done():
				return
			}
			calls.Go(func() {
				defer func() { <-busy }()
				s.called(ref, wake(ctx, ref))
			})
		}
	}
}

// again returns the delay after a number of failed calls.
func again(failed int) time.Duration {
	return retry.Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second, Multiplier: 2}.Delay(failed)
}

// called records the end of a call. After a failure the job gets another wake-up, even if it
// was replaced or removed meanwhile: an unneeded call sets the right one.
func (s *Schedules) called(ref job.Ref, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.failed, ref)
		return
	}
	at := s.clock.Now().Add(again(s.failed[ref]))
	s.failed[ref]++
	if set, ok := s.wakeUps[ref]; !ok || at.Before(set) {
		s.set(ref, at)
	}
}

// await returns when a wake-up was set, the wait is over or ctx ends.
func (s *Schedules) await(ctx context.Context, wait time.Duration) {
	until := s.clock.Now().Add(wait)
	fired, stop := s.clock.NewTimer(wait)
	defer stop()
	if !s.clock.Now().Before(until) {
		return // the clock moved before the timer was made
	}
	select {
	case <-fired:
	case <-s.changed:
	case <-ctx.Done():
	}
}

// next removes and returns the wake-ups that are due. Without one it returns the time to the
// next one.
func (s *Schedules) next() (due []job.Ref, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for len(s.queue) > 0 {
		first := s.queue[0]
		set, ok := s.wakeUps[first.ref]
		if current := ok && set.Equal(first.at); current && first.at.After(now) {
			return due, min(first.at.Sub(now), longest)
		} else if current {
			due = append(due, first.ref)
			delete(s.wakeUps, first.ref)
		}
		heap.Pop(&s.queue)
	}
	return due, longest
}

type wakeUp struct {
	ref job.Ref
	at  time.Time
}

// queue is a heap of wake-ups, earliest first.
type queue []wakeUp

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(wakeUp)) } //nolint:forcetypeassert // heap.Push of Set alone

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
