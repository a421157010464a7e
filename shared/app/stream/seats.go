package stream

import (
	"context"
	"sync"
)

// seats count the open streams of tenants.
type seats struct {
	most int
	// closing is closed when open streams must end.
	closing chan struct{}

	mu     sync.Mutex
	closed bool
	taken  map[string]int
	open   sync.WaitGroup
}

func newSeats(most int) *seats {
	return &seats{most: most, closing: make(chan struct{}), taken: map[string]int{}}
}

// take takes a seat. It returns false if the tenant has no free seat, and after close.
func (s *seats) take(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.taken[tenant] >= s.most {
		return false
	}
	s.taken[tenant]++
	s.open.Add(1)
	return true
}

// leave releases a seat.
func (s *seats) leave(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[tenant]--; s.taken[tenant] == 0 {
		delete(s.taken, tenant)
	}
	s.open.Done()
}

// close ends the open streams, refuses new ones, and waits until all seats are free.
func (s *seats) close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	free := make(chan struct{})
	go func() { s.open.Wait(); close(free) }()
	select {
	case <-free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
