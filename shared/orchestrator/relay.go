package orchestrator

import (
	"context"
	"log/slog"
	"slices"

	"github.com/sortie-dev/sortie/shared/port"
)

// Relay publishes the events of commits.
type Relay struct {
	publisher port.Publisher
	log       *slog.Logger
}

// NewRelay returns a Relay to a publisher.
func NewRelay(publisher port.Publisher, log *slog.Logger) *Relay { return &Relay{publisher, log} }

// Change is one commit, as the store's stream delivers it, with its events.
type Change struct {
	// ID identifies the change in its batch.
	ID     string
	Events []port.PublishedEvent
	// Err is why the change cannot be read; it has no events then.
	Err error
}

// Relay publishes the events of changes. It returns, in order, the ids of changes
// that were not read, or not published as a whole. The caller delivers these
// again, with all changes behind the first of them, so delivery is at least once.
// A change that can never be published does not block the others.
func (s *Relay) Relay(ctx context.Context, changes []Change) (failed []string) {
	var events []port.PublishedEvent
	var of []int // the change of each event
	lost := make([]bool, len(changes))
	for i, c := range changes {
		if c.Err != nil {
			lost[i] = true
			s.log.ErrorContext(ctx, "cannot read a change of the store; its events are not published",
				"change", c.ID, "error", c.Err.Error())
		}
		events = append(events, c.Events...)
		of = append(of, slices.Repeat([]int{i}, len(c.Events))...)
	}
	if len(events) > 0 {
		refused, err := s.publisher.Publish(ctx, events)
		for _, n := range refused {
			e := events[n]
			lost[of[n]] = true
			s.log.WarnContext(ctx, "an event was not published", "change", changes[of[n]].ID, "run_id", e.RunID,
				"task_id", e.TaskID, "correlation_id", e.CorrelationID, "seq", e.Event.Seq, "type", string(e.Event.Type))
		}
		if err != nil {
			s.log.ErrorContext(ctx, "cannot publish events", "events", len(refused), "error", err.Error())
		}
	}
	for i, c := range changes {
		if lost[i] {
			failed = append(failed, c.ID)
		}
	}
	return failed
}
