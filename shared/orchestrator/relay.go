package orchestrator

import (
	"context"
	"slices"

	"github.com/sortie-dev/sortie/shared/port"
)

// Change is one commit as the store tells it afterwards, with what is to be
// published of it.
type Change struct {
	// ID finds the change again in its batch.
	ID     string
	Events []port.PublishedEvent
	// Err says why the change cannot be read; it has no events then.
	Err error
}

// Relay publishes the events of changes, and gives the ids of those that were
// not read or not told as a whole, in their order. Whoever calls hands these in
// again, and all behind the first of them, so that events can be told twice.
// A change that can never be told keeps no other from being told. It needs
// Publisher and Log.
func (s *Service) Relay(ctx context.Context, changes []Change) (failed []string) {
	var events []port.PublishedEvent
	var of []int // the change of each event
	lost := make([]bool, len(changes))
	for i, c := range changes {
		if c.Err != nil {
			lost[i] = true
			s.ports.Log.ErrorContext(ctx, "a change of the store cannot be read, and its events are not told",
				"change", c.ID, "error", c.Err.Error())
		}
		events = append(events, c.Events...)
		of = append(of, slices.Repeat([]int{i}, len(c.Events))...)
	}
	if len(events) > 0 {
		refused, err := s.ports.Publisher.Publish(ctx, events)
		for _, n := range refused {
			e := events[n]
			lost[of[n]] = true
			s.ports.Log.WarnContext(ctx, "an event was not told", "change", changes[of[n]].ID, "run_id", e.RunID,
				"task_id", e.TaskID, "correlation_id", e.CorrelationID, "seq", e.Event.Seq, "type", string(e.Event.Type))
		}
		if err != nil {
			s.ports.Log.ErrorContext(ctx, "events cannot be told", "events", len(refused), "error", err.Error())
		}
	}
	for i, c := range changes {
		if lost[i] {
			failed = append(failed, c.ID)
		}
	}
	return failed
}
