package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ port.Seats = (*Store)(nil)

// The items of seats have no tenant: a room is any text.
const (
	seatPrefix = schema.SeatPartitions
	sortSeat   = "seat#"
	attrHolder = "holder"
	attrUntil  = "until" // in nanoseconds; the TTL is later
)

// errTaken reports that the seat has another holder.
var errTaken = errors.New("the seat is taken")

func seatKey(room string, number int) item {
	return keyOf(seatPrefix+room, fmt.Sprintf("%s%06d", sortSeat, number))
}

// TakeSeat implements port.Seats. It reads the taken seats of the room, and acquires a random
// free one with a conditional put.
func (s *Store) TakeSeat(ctx context.Context, room string, most int, until time.Time) (port.Seat, bool, error) {
	taken, err := s.takenSeats(ctx, room)
	if err != nil {
		return port.Seat{}, false, wrap(err, "read the seats of", room)
	}
	first := int(s.config.Random() % uint64(max(most, 1))) //nolint:gosec // below most
	for i := range most {
		number := (first + i) % most
		if taken[number] {
			continue
		}
		seat := port.Seat{Room: room, Number: number, Holder: strconv.FormatUint(s.config.Random(), 36)}
		switch err := s.takeSeat(ctx, seat, until); {
		case err == nil || errors.Is(err, errApplied):
			return seat, true, nil
		case !errors.Is(err, errTaken):
			return port.Seat{}, false, wrap(err, "take a seat of", room)
		}
	}
	return port.Seat{}, false, nil
}

func (s *Store) takeSeat(ctx context.Context, seat port.Seat, until time.Time) error {
	p := &part{put: seatKey(seat.Room, seat.Number)}
	p.put[attrHolder], p.put[attrUntil] = text(seat.Holder), number(unixNanos(until))
	p.put[schema.TTL] = number(wholeSecond(until) + 1)
	p.where(attrUntil, "<=", number(unixNanos(s.now())))
	p.conditions = []string{"(attribute_not_exists(" + p.name(attrUntil) + ") OR " + p.conditions[0] + ")"}
	p.refused = func(_ context.Context, is item) error {
		if textOf(is[attrHolder]) == seat.Holder {
			return errApplied
		}
		return errTaken
	}
	return s.write(ctx, []*part{p})
}

// KeepSeat implements port.Seats with one conditional write.
func (s *Store) KeepSeat(ctx context.Context, seat port.Seat, until time.Time) (bool, error) {
	p := &part{key: seatKey(seat.Room, seat.Number)}
	p.set(attrUntil, number(unixNanos(until)))
	p.set(schema.TTL, number(wholeSecond(until)+1))
	p.where(attrHolder, "=", text(seat.Holder))
	p.where(attrUntil, ">", number(unixNanos(s.now())))
	p.refused = func(context.Context, item) error { return errTaken }
	err := s.write(ctx, []*part{p})
	if errors.Is(err, errTaken) {
		return false, nil
	}
	return err == nil, wrap(err, "keep a seat of", seat.Room)
}

// takenSeats returns the numbers of the seats of a room that are taken now.
func (s *Store) takenSeats(ctx context.Context, room string) (map[int]bool, error) {
	query := &dynamodb.QueryInput{
		TableName: &s.config.Table, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: s.returnConsumed(),
		KeyConditionExpression:    aws.String("#pk = :pk"),
		ExpressionAttributeNames:  map[string]string{"#pk": schema.Partition.Name},
		ExpressionAttributeValues: item{":pk": text(seatPrefix + room)},
	}
	taken, now := map[int]bool{}, unixNanos(s.now())
	for {
		out, err := call(ctx, s, s.api.Query, query)
		if err != nil {
			return nil, err
		}
		for _, is := range out.Items {
			n, err := strconv.Atoi(strings.TrimPrefix(textOf(is[schema.Sort.Name]), sortSeat))
			if err == nil && numberOf(is[attrUntil]) > now {
				taken[n] = true
			}
		}
		if query.ExclusiveStartKey = out.LastEvaluatedKey; len(query.ExclusiveStartKey) == 0 {
			return taken, nil
		}
	}
}

// LeaveSeat implements port.Seats.
func (s *Store) LeaveSeat(ctx context.Context, seat port.Seat) error {
	p := &part{key: seatKey(seat.Room, seat.Number), remove: true}
	p.where(attrHolder, "=", text(seat.Holder))
	p.refused = func(context.Context, item) error { return errApplied } // it is free, or another holder's
	err := s.write(ctx, []*part{p})
	if errors.Is(err, errApplied) {
		err = nil
	}
	return wrap(err, "leave a seat of", seat.Room)
}
