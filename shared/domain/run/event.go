package run

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Event is something that happened to a run, in the past tense.
type Event struct {
	// ID is a ULID. It is derived from the decision: a repeated decision about the same record
	// at the same time yields the same ids.
	ID string `json:"eventId"`
	// Seq numbers a run's events from 1 without gaps.
	Seq  int       `json:"seq"`
	Type EventType `json:"type"`
	At   time.Time `json:"occurredAt"`
	// From and State are the states before and after; they are equal for an
	// event without a transition.
	From    State `json:"from,omitempty"`
	State   State `json:"state"`
	Attempt int   `json:"attempt"`
	// Message is a sentence with details that the type does not imply.
	Message string       `json:"message,omitempty"`
	Fault   *fault.Fault `json:"fault,omitempty"`
	Exit    *Exit        `json:"exit,omitempty"`
	// Triggered is the run that an action triggered; nil for other events.
	Triggered *JobRun `json:"triggered,omitempty"`
	// Actor caused the event; zero means the state machine.
	Actor Actor `json:"actor,omitzero"`
}

// Ends reports whether the event ends its run.
func (e Event) Ends() bool { return e.State.Terminal() && !e.From.Terminal() }

// EventType is the type of an event.
type EventType string

// The types of the events of a run. Each transition has exactly one. The others are facts that
// leave the state unchanged. Package eventtype describes them.
const (
	EventAccepted         = EventType(eventtype.Accepted)
	EventDue              = EventType(eventtype.Due)
	EventConditionsDue    = EventType(eventtype.ConditionsDue)
	EventConditionsTested = EventType(eventtype.ConditionsTested)
	EventActionDue        = EventType(eventtype.ActionDue)
	EventActionStarted    = EventType(eventtype.ActionStarted)
	EventAdmitted         = EventType(eventtype.Admitted)
	EventStarted          = EventType(eventtype.Started)
	EventAttemptEnded     = EventType(eventtype.AttemptEnded)
	EventRetryScheduled   = EventType(eventtype.RetryScheduled)
	EventRetryDue         = EventType(eventtype.RetryDue)
	EventCompleted        = EventType(eventtype.Completed)
	EventSkipped          = EventType(eventtype.Skipped)
	EventFailed           = EventType(eventtype.Failed)
	EventCancelled        = EventType(eventtype.Cancelled)
	EventOrphaned         = EventType(eventtype.Orphaned)

	EventQueued            = EventType(eventtype.Queued)
	EventMachineCreated    = EventType(eventtype.MachineCreated)
	EventStartRefused      = EventType(eventtype.StartRefused)
	EventCancelRequested   = EventType(eventtype.CancelRequested)
	EventRestarted         = EventType(eventtype.Restarted)
	EventOutputExpiring    = EventType(eventtype.OutputExpiring)
	EventOutputDeleted     = EventType(eventtype.OutputDeleted)
	EventHeartbeatExempted = EventType(eventtype.HeartbeatExempted)
	EventWorkerContacted   = EventType(eventtype.WorkerContacted)
	EventLabelsChanged     = EventType(eventtype.LabelsChanged)
	EventPinned            = EventType(eventtype.Pinned)
	EventUnpinned          = EventType(eventtype.Unpinned)

	EventChildrenProgressed = EventType(eventtype.ChildrenProgressed)

	EventConstraintViolated   = EventType(eventtype.ConstraintViolated)
	EventConditionsMet        = EventType(eventtype.ConditionsMet)
	EventActionExecuted       = EventType(eventtype.ActionExecuted)
	EventActionFailed         = EventType(eventtype.ActionFailed)
	EventExpectedTimeExceeded = EventType(eventtype.ExpectedTimeExceeded)
	EventZombieDetected       = EventType(eventtype.ZombieDetected)
)

var transitionEvents = map[State]EventType{
	ConditionPending: EventConditionsDue, ConditionRunning: EventConditionsTested,
	ActionPending: EventActionDue, ActionRunning: EventActionStarted,
	ContainerCreating: EventAdmitted, Running: EventStarted, Terminating: EventAttemptEnded,
	Retrying: EventRetryScheduled, Completed: EventCompleted, Failed: EventFailed,
	Cancelled: EventCancelled, Orphaned: EventOrphaned,
}

// transitionEvent returns the event type of a transition. The run is still in the state before
// it.
func (r Run) transitionEvent(to State) EventType {
	switch from := r.State; {
	case to == Completed && r.Skipped:
		return EventSkipped
	case to == Pending && from == PreRun:
		return EventDue
	case to == Pending:
		return EventRetryDue
	}
	return transitionEvents[to]
}

// eventID returns the id of an event of a run.
func eventID(r Run, seq int, at time.Time) string {
	return EventID(at, fmt.Sprintf("%q %q %d", r.Tenant, r.ID, seq))
}

// EventID returns the ULID of an event, made from its time and a hash of identity.
func EventID(at time.Time, identity string) string {
	sum := sha256.Sum256([]byte(identity))
	var id ulid.ULID
	if err := id.SetTime(uint64(max(at.UnixMilli(), 0))); err != nil {
		copy(id[:6], sum[10:16])
	}
	copy(id[6:], sum[:10])
	return id.String()
}
