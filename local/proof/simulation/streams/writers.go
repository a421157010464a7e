package streams

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// turner is a store with which several processes take turns.
type turner interface {
	port.Writers
	port.Seats
}

// writerTurns returns the turns of a host, with injected faults. The local home has one host.
func (w *Streams) writerTurns(c clock.Clock) delivery.TurnTaking {
	if !w.Home.SurvivesCrash() {
		return delivery.NoTurns{}
	}
	of, ok := w.Process.Store.(turner)
	if !ok {
		w.Fail("the store %T has no turns", w.Process.Store)
	}
	faulty := faultyTurns{of, w}
	return delivery.NewTurns(faulty, faulty, c, w.Log, w.Random.Float64)
}

// faultyTurns are turns with injected faults. A process can crash while it waits for its turn
// and during it.
type faultyTurns struct {
	of turner
	w  *Streams
}

// Enqueue implements port.Writers.
func (f faultyTurns) Enqueue(ctx context.Context, one port.Writer, until time.Time) error {
	f.w.Events.Queued++
	return duringWrite(ctx, f.w, func() error { return f.of.Enqueue(ctx, one, until) })
}

// Ahead implements port.Writers.
func (f faultyTurns) Ahead(ctx context.Context, one port.Writer) (int, error) {
	return during(ctx, f.w, false, func() (int, error) { return f.of.Ahead(ctx, one) })
}

// Leave implements port.Writers.
func (f faultyTurns) Leave(ctx context.Context, one port.Writer) error {
	return duringWrite(ctx, f.w, func() error { return f.of.Leave(ctx, one) })
}

// TakeSeat implements port.Seats.
func (f faultyTurns) TakeSeat(ctx context.Context, room string, most int, until time.Time) (seat port.Seat, ok bool, err error) {
	seat, err = during(ctx, f.w, true, func() (seat port.Seat, err error) {
		seat, ok, err = f.of.TakeSeat(ctx, room, most, until)
		return seat, err
	})
	return seat, ok, err
}

// KeepSeat implements port.Seats.
func (f faultyTurns) KeepSeat(ctx context.Context, seat port.Seat, until time.Time) (bool, error) {
	return during(ctx, f.w, true, func() (bool, error) { return f.of.KeepSeat(ctx, seat, until) })
}

// LeaveSeat implements port.Seats.
func (f faultyTurns) LeaveSeat(ctx context.Context, seat port.Seat) error {
	return duringWrite(ctx, f.w, func() error { return f.of.LeaveSeat(ctx, seat) })
}
