package port

import (
	"context"
	"time"
)

// Seats is a counting semaphore for several processes. It limits, for example, the open streams of
// a tenant. A room is one semaphore with numbered seats; rooms are independent. It is safe for
// concurrent use, by any number of processes.
type Seats interface {
	// TakeSeat takes a free seat of a room with most seats. The seat is free again at the time
	// until, even if its process ended without LeaveSeat. ok is false if no seat is free. A
	// repeated call takes another seat. The number of seats may differ between calls: holders keep
	// seats above most, but no call takes one.
	TakeSeat(ctx context.Context, room string, most int, until time.Time) (seat Seat, ok bool, err error)
	// KeepSeat extends a taken seat until another time. ok is false if the seat is free or has
	// another holder by now.
	KeepSeat(ctx context.Context, seat Seat, until time.Time) (ok bool, err error)
	// LeaveSeat frees a seat. It does nothing if the seat is free or has another holder by now.
	LeaveSeat(ctx context.Context, seat Seat) error
}

// Seat is a seat that a process holds.
type Seat struct {
	Room   string
	Number int
	// Holder is unique for each TakeSeat.
	Holder string
}
