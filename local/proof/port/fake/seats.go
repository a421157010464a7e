package fake

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// Seats stores rooms in memory. It is safe for concurrent use.
type Seats struct {
	calls
	clock clock.Clock

	mu    sync.Mutex
	taken map[string]map[int]heldSeat
	last  int
}

type heldSeat struct {
	holder string
	until  time.Time
}

var _ port.Seats = (*Seats)(nil)

// NewSeats returns rooms in which all seats are free.
func NewSeats(clk clock.Clock, plan Plan) *Seats {
	return &Seats{calls: calls{plan: plan}, clock: clk, taken: map[string]map[int]heldSeat{}}
}

// TakeSeat implements port.Seats.
func (s *Seats) TakeSeat(ctx context.Context, room string, most int, until time.Time) (seat port.Seat, ok bool, err error) {
	err = s.call(ctx, "TakeSeat", room, true, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for number := range most {
			if s.taken[room][number].until.After(s.clock.Now()) {
				continue
			}
			if s.taken[room] == nil {
				s.taken[room] = map[int]heldSeat{}
			}
			s.last++
			seat, ok = port.Seat{Room: room, Number: number, Holder: strconv.Itoa(s.last)}, true
			s.taken[room][number] = heldSeat{seat.Holder, until}
			break
		}
		return nil
	})
	if err != nil {
		return port.Seat{}, false, err
	}
	return seat, ok, nil
}

// KeepSeat implements port.Seats.
func (s *Seats) KeepSeat(ctx context.Context, seat port.Seat, until time.Time) (ok bool, err error) {
	err = s.call(ctx, "KeepSeat", seat.Room, true, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		held := s.taken[seat.Room][seat.Number]
		if ok = held.holder == seat.Holder && held.until.After(s.clock.Now()); ok {
			s.taken[seat.Room][seat.Number] = heldSeat{seat.Holder, until}
		}
		return nil
	})
	return ok && err == nil, err
}

// LeaveSeat implements port.Seats.
func (s *Seats) LeaveSeat(ctx context.Context, seat port.Seat) error {
	return s.call(ctx, "LeaveSeat", seat.Room, true, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.taken[seat.Room][seat.Number].holder == seat.Holder {
			delete(s.taken[seat.Room], seat.Number)
		}
		return nil
	})
}
