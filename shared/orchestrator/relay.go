package orchestrator

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
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
	// ID identifies the change.
	ID string
	// At is when the stream got it; zero if that is unknown.
	At     time.Time
	Events []port.PublishedEvent
	// Err is why the change cannot be read; it has no events then.
	Err error
}

// setAsideAfter is the age of a change at which it is set aside although the bus may
// only be unavailable: the stream deletes it after a day.
const setAsideAfter = 20 * time.Hour

// Relay publishes the events of changes. It returns, in order, the ids of changes
// that were not published as a whole. The caller delivers those in again once more,
// with all changes behind the first of them, so delivery is at least once. It sets
// those in aside aside: they cannot be read or are refused for good, or they are
// older than 20 h.
func (s *Relay) Relay(ctx context.Context, changes []Change, now time.Time) (again, aside []string) {
	var events []port.PublishedEvent
	var of []int // the change of each event
	lost := make([]bool, len(changes))
	for i, c := range changes {
		if c.Err != nil {
			lost[i] = true
			s.log.ErrorContext(ctx, "cannot read a change of the store; its events are set aside",
				"change", c.ID, "error", c.Err.Error())
		}
		events = append(events, c.Events...)
		of = append(of, slices.Repeat([]int{i}, len(c.Events))...)
	}
	var err error
	if len(events) > 0 {
		var refused []int
		refused, err = s.publisher.Publish(ctx, events)
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
	forGood := err != nil && !fault.Is(err, fault.Unavailable)
	for i, c := range changes {
		switch {
		case !lost[i]:
		case c.Err != nil, forGood, !c.At.IsZero() && now.Sub(c.At) >= setAsideAfter:
			aside = append(aside, c.ID)
		default:
			again = append(again, c.ID)
		}
	}
	return again, aside
}
