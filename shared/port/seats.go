package port

import (
	"context"
	"time"
)

// Seats count what several processes hold at the same time, such as the open streams of a
// tenant. A room has numbered seats; rooms are independent. It is safe for concurrent use,
// also by several processes.
type Seats interface {
	// TakeSeat takes a free seat of a room with most seats, until a time at the latest:
	// then the seat is free again, also if its process has ended without LeaveSeat. ok is
	// false if none is free. A repeated call takes a further seat. The number of seats
	// may differ between calls: seats above most are kept, and not given away.
	TakeSeat(ctx context.Context, room string, most int, until time.Time) (seat Seat, ok bool, err error)
	// KeepSeat keeps a taken seat until another time. ok is false if the seat is free or is
	// another holder's by now.
	KeepSeat(ctx context.Context, seat Seat, until time.Time) (ok bool, err error)
	// LeaveSeat frees a seat. It does nothing if the seat is free or is another holder's
	// by now.
	LeaveSeat(ctx context.Context, seat Seat) error
}

// Seat is a taken seat.
type Seat struct {
	Room   string
	Number int
	// Holder is unique for each TakeSeat.
	Holder string
}
