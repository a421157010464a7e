package client

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// pollInterval is the minimum time between two requests if the server answers at once.
const pollInterval = time.Second

// Follow polls a task until it has ended and returns its last status. It calls update with each
// status and the events since the previous one. wait is the time for which the server may delay
// a response, in whole seconds, at least one. It also bounds the delay of events.
//
// It returns early with the error of ctx or with the first failure that
// WithRetry does not cover.
func (c *Client) Follow(ctx context.Context, taskID string, wait time.Duration, update func(contract.Status, []contract.TaskEvent)) (contract.Status, error) {
	var last contract.Status
	seen, delay := 0, time.Duration(0)
	for {
		asked := c.clock.Now()
		status, header, err := c.status(ctx, taskID, delay)
		if err != nil {
			return last, err
		}
		events, err := c.Events(ctx, taskID, seen)
		if err != nil {
			return last, err
		}
		if len(events) > 0 {
			seen = events[len(events)-1].Seq
		}
		update(status, events)
		if status.Status != contract.StatusProcessing {
			return status, nil
		}
		if delay > 0 && len(events) == 0 {
			pause := pollInterval
			if after := retryAfter(header); after > 0 {
				pause = min(after, wait)
			}
			if rest := pause - c.clock.Now().Sub(asked); rest > 0 {
				if err := c.sleep(ctx, rest); err != nil {
					return status, err
				}
			}
		}
		last, delay = status, max(wait, time.Second)
	}
}
