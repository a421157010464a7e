package client

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// leastPause is how long a server that does not wait is left alone between two
// questions.
const leastPause = time.Second

// Follow asks for a task until it has ended and gives its last status. tell
// gets each answer with the events since the one before. wait is how long the
// server is asked to keep each question, in whole seconds, at least one: what
// happens between two questions is told by the events, at most that much later.
//
// It ends early with the ctx's error or the first failure that is not borne:
// see Patient.
func (c *Client) Follow(ctx context.Context, taskID string, wait time.Duration, tell func(contract.Status, []contract.TaskEvent)) (contract.Status, error) {
	var last contract.Status
	seen, patience := 0, time.Duration(0)
	for {
		asked := c.clock.Now()
		status, header, err := c.status(ctx, taskID, patience)
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
		tell(status, events)
		if status.Status != contract.StatusProcessing {
			return status, nil
		}
		if patience > 0 && len(events) == 0 {
			pause := leastPause
			if asks := retryAfter(header); asks > 0 {
				pause = min(asks, wait)
			}
			if rest := pause - c.clock.Now().Sub(asked); rest > 0 {
				if err := c.sleep(ctx, rest); err != nil {
					return status, err
				}
			}
		}
		last, patience = status, max(wait, time.Second)
	}
}
