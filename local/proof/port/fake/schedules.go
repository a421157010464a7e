package fake

import (
	"context"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/port"
)

// Schedules stores wake-ups in memory. It does not deliver them itself. The subject of a call
// is the ID of the job. It is safe for concurrent use.
type Schedules struct {
	calls
	// Late is the value that Precision returns.
	Late    time.Duration
	lock    sync.Mutex
	wakeUps map[job.Ref]time.Time
}

var _ port.Schedules = (*Schedules)(nil)

// NewSchedules returns Schedules without wake-ups.
func NewSchedules(plan Plan) *Schedules {
	return &Schedules{calls: calls{plan: plan}, wakeUps: map[job.Ref]time.Time{}}
}

// Set implements port.Schedules.
func (s *Schedules) Set(ctx context.Context, ref job.Ref, at time.Time) error {
	return s.call(ctx, "Set", ref.ID, true, func() error {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.wakeUps[ref] = at
		return nil
	})
}

// Precision implements port.Schedules.
func (s *Schedules) Precision() time.Duration { return s.Late }

// Remove implements port.Schedules.
func (s *Schedules) Remove(ctx context.Context, ref job.Ref) error {
	return s.call(ctx, "Remove", ref.ID, true, func() error {
		s.lock.Lock()
		defer s.lock.Unlock()
		delete(s.wakeUps, ref)
		return nil
	})
}

// WakeUp returns the time of the job's wake-up, or the zero time without one.
func (s *Schedules) WakeUp(ref job.Ref) time.Time {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.wakeUps[ref]
}

// Take removes and returns the due wake-ups, in any order.
func (s *Schedules) Take(now time.Time) (due []job.Ref) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for ref, at := range s.wakeUps {
		if !at.After(now) {
			due = append(due, ref)
			delete(s.wakeUps, ref)
		}
	}
	return due
}
