package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// The events are searched backwards, page by page, for those that a filter selects.
const (
	eventPage  = 1000
	eventPages = 20
	// SearchedEvents is the number of events that NewestEvents searches at most.
	SearchedEvents = eventPage * eventPages
)

// The names of positions in a stream.
const (
	Earliest = "earliest"
	Latest   = "latest"
)

// NewestEvents returns the newest events that the filter selects, newest first. Next is the end
// of the stream. all reports whether older events were searched as far as needed.
func (c *Client) NewestEvents(ctx context.Context, wanted events.Filter, limit int) (page contract.EventPage, all bool, err error) {
	page.Events = []json.RawMessage{}
	end, err := c.EventPage(ctx, nil, Latest, 1)
	if err != nil {
		return page, false, err
	}
	page.Next = end.Next
	at, _ := stream.ParseCursor(end.Next) // an unknown form has no position, so no events
	for range eventPages {
		found, first, err := c.eventsBefore(ctx, at)
		if err != nil {
			return page, false, err
		}
		for _, document := range slices.Backward(found) {
			if e, err := events.Parse(document); err == nil && !wanted.Matches(e) {
				continue
			}
			if page.Events = append(page.Events, document); len(page.Events) == limit {
				return page, true, nil
			}
		}
		if len(found) == 0 || first.Position <= 0 {
			return page, true, nil
		}
		at = first
	}
	return page, false, nil
}

// eventsBefore returns up to a page of events before a cursor, oldest first, and the cursor
// before them. The stream may have lost its oldest events.
func (c *Client) eventsBefore(ctx context.Context, end stream.Cursor) (found []json.RawMessage, first stream.Cursor, err error) {
	first = stream.Cursor{Epoch: end.Epoch, Position: max(end.Position-eventPage, 0)}
	for at := first; at.Position < end.Position; {
		page, err := c.EventPage(ctx, nil, at.String(), int(end.Position-at.Position))
		if p, ok := errors.AsType[*Problem](err); ok && p.Code == fault.CursorExpired && at == first {
			if page, err = c.EventPage(ctx, nil, Earliest, 1); err == nil { // the oldest is after first
				at, _ = stream.ParseCursor(page.Next)
				at.Position -= int64(len(page.Events))
				if first = at; len(page.Events) > 0 {
					continue
				}
			}
		}
		if err != nil {
			return nil, first, err
		}
		next, ok := stream.ParseCursor(page.Next)
		if len(page.Events) == 0 || !ok {
			break
		}
		found, at = append(found, page.Events...), next
	}
	return found, first, nil
}
