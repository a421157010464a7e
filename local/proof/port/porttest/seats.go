package porttest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// SeatsHarness is an adapter of port.Seats in which all seats are free.
type SeatsHarness struct {
	// Seats and Other are the adapters of two processes with the same rooms.
	Seats, Other port.Seats
	// Now returns the time of the adapter's clock, and Advance advances it.
	Now     func() time.Time
	Advance func(d time.Duration)
}

// Seats is the conformance suite of port.Seats.
func Seats(t *testing.T, open func(t *testing.T) SeatsHarness) {
	t.Helper()
	for name, test := range map[string]func(s seatsTest){
		"a room has its number of seats": func(s seatsTest) {
			first, second := s.take(s.Seats, "a", 2), s.take(s.Other, "a", 2)
			if first.Number == second.Number || first.Holder == second.Holder {
				s.t.Errorf("got the seats %+v and %+v, want two", first, second)
			}
			s.full(s.Seats, "a", 2)
			s.take(s.Seats, "b", 2)
			s.take(s.Seats, "a", 3)
		},
		"a room without seats": func(s seatsTest) { s.full(s.Seats, "a", 0) },
		"a free seat can be taken": func(s seatsTest) {
			seat := s.take(s.Seats, "a", 1)
			s.leave(s.Other, seat)
			s.take(s.Seats, "a", 1)
		},
		"leaving again changes nothing": func(s seatsTest) {
			seat := s.take(s.Seats, "a", 1)
			s.leave(s.Seats, seat)
			s.leave(s.Seats, seat)
			s.take(s.Other, "a", 1)
			s.leave(s.Seats, seat)
			s.full(s.Seats, "a", 1)
		},
		"a seat is free after its time": func(s seatsTest) {
			seat := s.take(s.Seats, "a", 1)
			s.Advance(time.Minute - time.Millisecond)
			s.full(s.Other, "a", 1)
			s.Advance(time.Millisecond)
			s.take(s.Other, "a", 1)
			s.leave(s.Seats, seat)
			s.full(s.Seats, "a", 1)
		},
		"a seat can be kept": func(s seatsTest) {
			seat := s.take(s.Seats, "a", 1)
			s.Advance(time.Minute - time.Millisecond)
			s.keep(s.Other, seat, true)
			s.Advance(time.Minute - time.Millisecond)
			s.full(s.Other, "a", 1)
			s.Advance(time.Millisecond)
			s.keep(s.Seats, seat, false)
			later := s.take(s.Other, "a", 1)
			s.keep(s.Seats, seat, false)
			s.leave(s.Other, later)
			s.keep(s.Seats, later, false)
			s.take(s.Seats, "a", 1)
		},
		"fewer seats than are taken": func(s seatsTest) {
			for range 3 {
				s.take(s.Seats, "a", 3)
			}
			s.full(s.Seats, "a", 2)
		},
		"concurrent calls take all seats, and none twice": func(s seatsTest) {
			const most, callers = 5, 20
			var all sync.WaitGroup
			var mu sync.Mutex
			numbers := map[int]int{}
			for i := range callers {
				all.Go(func() {
					seat, ok, err := []port.Seats{s.Seats, s.Other}[i%2].TakeSeat(s.t.Context(), "a", most, s.Now().Add(time.Minute))
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						s.t.Error(err)
					} else if ok {
						numbers[seat.Number]++
					}
				})
			}
			all.Wait()
			if got, want := fmt.Sprint(numbers), "map[0:1 1:1 2:1 3:1 4:1]"; got != want {
				s.t.Errorf("got the seats %s, want %s", got, want)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(seatsTest{open(t), t})
		})
	}
}

type seatsTest struct {
	SeatsHarness
	t *testing.T
}

func (s seatsTest) take(from port.Seats, room string, most int) port.Seat {
	s.t.Helper()
	seat, ok, err := from.TakeSeat(s.t.Context(), room, most, s.Now().Add(time.Minute))
	if err != nil || !ok || seat.Room != room || seat.Number < 0 || seat.Number >= most {
		s.t.Fatalf("got %+v, %t, %v, want one of the %d seats of %s", seat, ok, err, most, room)
	}
	return seat
}

func (s seatsTest) full(from port.Seats, room string, most int) {
	s.t.Helper()
	if seat, ok, err := from.TakeSeat(s.t.Context(), room, most, s.Now().Add(time.Minute)); ok || err != nil {
		s.t.Errorf("got %+v, %t, %v, want no free seat of %d in %s", seat, ok, err, most, room)
	}
}

func (s seatsTest) leave(at port.Seats, seat port.Seat) {
	s.t.Helper()
	if err := at.LeaveSeat(s.t.Context(), seat); err != nil {
		s.t.Errorf("got %v, want the seat left", err)
	}
}

func (s seatsTest) keep(at port.Seats, seat port.Seat, want bool) {
	s.t.Helper()
	if ok, err := at.KeepSeat(s.t.Context(), seat, s.Now().Add(time.Minute)); ok != want || err != nil {
		s.t.Errorf("got %t, %v, want the seat kept: %t", ok, err, want)
	}
}
