package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// roomOfAll is the room of the readers of all tenants. No stream has this name.
const roomOfAll = "events"

// seatMargin is how long a seat outlasts the stream if the process of the reader has ended.
// leaveTime is the time limit for releasing a seat.
const (
	seatMargin = time.Minute
	leaveTime  = 2 * time.Second
)

// enter takes the seats of a reader. ok is false if the tenant or the server has no free seat.
// leave releases the seats.
func (s *Streams) enter(ctx context.Context, tenant string) (leave func(), ok bool, err error) {
	if !s.seats.take(tenant) {
		return nil, false, nil
	}
	var taken []port.Seat
	leave = func() {
		s.leaveRooms(ctx, taken)
		s.seats.leave(tenant)
	}
	if s.config.Seats == nil {
		return leave, true, nil
	}
	for _, room := range []struct {
		name string
		most int
	}{{port.EventStream(tenant), s.config.Readers}, {roomOfAll, s.config.Total}} {
		if room.name == roomOfAll && room.most == 0 {
			continue
		}
		seat, ok, err := s.config.Seats.TakeSeat(ctx, room.name, room.most, s.clock.Now().Add(s.config.Life+seatMargin))
		if err != nil || !ok {
			leave()
			if err != nil {
				err = fmt.Errorf("cannot count the open streams: %w", err)
			}
			return nil, false, err
		}
		taken = append(taken, seat)
	}
	return leave, true, nil
}

// leaveRooms releases seats, even after the end of ctx. A seat that cannot be released expires.
func (s *Streams) leaveRooms(ctx context.Context, taken []port.Seat) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	for _, seat := range taken {
		if err := s.config.Seats.LeaveSeat(ctx, seat); err != nil {
			s.log.WarnContext(ctx, "cannot give a seat back; it is free after its time", "room", seat.Room, "error", err.Error())
		}
	}
}
