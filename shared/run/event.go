package run

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Event is something that happened to a run, in the past tense.
type Event struct {
	// ID is a ULID, fixed by the decision: a repeated decision about the same
	// record at the same time yields the same ids.
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
}

// EventType is the type of an event.
type EventType string

// The types of events. Each transition has exactly one; the others are facts
// that leave the state unchanged.
const (
	EventAccepted         EventType = "job.accepted"          // created: Pending, or PreRun
	EventDue              EventType = "job.due"               // PreRun -> Pending
	EventConditionsDue    EventType = "job.conditions_due"    // -> ConditionPending
	EventConditionsTested EventType = "job.conditions_tested" // -> ConditionRunning
	EventActionDue        EventType = "job.action_due"        // -> ActionPending
	EventActionStarted    EventType = "job.action_started"    // -> ActionRunning
	EventAdmitted         EventType = "job.admitted"          // -> ContainerCreating
	EventStarted          EventType = "job.started"           // -> Running: the machine runs or has run, or its worker called
	EventAttemptEnded     EventType = "job.attempt_ended"     // -> Terminating
	EventRetryScheduled   EventType = "job.retry_scheduled"   // -> Retrying
	EventRetryDue         EventType = "job.retry_due"         // Retrying -> Pending
	EventCompleted        EventType = "job.completed"
	EventFailed           EventType = "job.failed"
	EventCancelled        EventType = "job.cancelled"
	EventOrphaned         EventType = "job.orphaned"

	EventQueued            EventType = "job.queued"
	EventMachineCreated    EventType = "job.machine_created"
	EventStartRefused      EventType = "job.start_refused"
	EventCancelRequested   EventType = "job.cancel_requested"
	EventRestarted         EventType = "job.execution_restarted"
	EventOutputExpiring    EventType = "job.output_expiring"
	EventOutputDeleted     EventType = "job.output_deleted"
	EventHeartbeatExempted EventType = "job.heartbeat_exempted"
	EventWorkerContacted   EventType = "job.worker_contacted"

	EventConstraintViolated   EventType = "job.constraint_violated"
	EventActionExecuted       EventType = "job.action_executed"
	EventActionFailed         EventType = "job.action_failed"
	EventExpectedTimeExceeded EventType = "job.expected_time_exceeded"
	EventZombieDetected       EventType = "job.zombie_detected" // the attempt then ends with HEARTBEAT_TIMEOUT
)

var transitionEvents = map[State]EventType{
	ConditionPending: EventConditionsDue, ConditionRunning: EventConditionsTested,
	ActionPending: EventActionDue, ActionRunning: EventActionStarted,
	ContainerCreating: EventAdmitted, Running: EventStarted, Terminating: EventAttemptEnded,
	Retrying: EventRetryScheduled, Completed: EventCompleted, Failed: EventFailed,
	Cancelled: EventCancelled, Orphaned: EventOrphaned,
}

func transitionEvent(from, to State) EventType {
	switch {
	case to == Pending && from == PreRun:
		return EventDue
	case to == Pending:
		return EventRetryDue
	}
	return transitionEvents[to]
}

// eventID returns a ULID of the event's time and a hash of run and number.
func eventID(r Run, seq int, at time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", r.Tenant, r.ID, seq))
	var id ulid.ULID
	if err := id.SetTime(uint64(max(at.UnixMilli(), 0))); err != nil {
		copy(id[:6], sum[10:16])
	}
	copy(id[6:], sum[:10])
	return id.String()
}
