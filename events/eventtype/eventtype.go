// Package eventtype lists the types of the events that Sortie publishes.
package eventtype

import "sync"

// Type is the type of an event.
type Type string

// The types of the transitions of a run. Each transition has exactly one.
const (
	Accepted         Type = "job.accepted"
	Due              Type = "job.due"
	ConditionsDue    Type = "job.conditions_due"
	ConditionsTested Type = "job.conditions_tested"
	ActionDue        Type = "job.action_due"
	ActionStarted    Type = "job.action_started"
	Admitted         Type = "job.admitted"
	Started          Type = "job.started"
	AttemptEnded     Type = "job.attempt_ended"
	RetryScheduled   Type = "job.retry_scheduled"
	RetryDue         Type = "job.retry_due"
	Completed        Type = "job.completed"
	Skipped          Type = "job.skipped"
	Failed           Type = "job.failed"
	Cancelled        Type = "job.cancelled"
	Orphaned         Type = "job.orphaned"
)

// The types of facts that leave the state of a run unchanged.
const (
	Queued               Type = "job.queued"
	MachineCreated       Type = "job.machine_created"
	StartRefused         Type = "job.start_refused"
	CancelRequested      Type = "job.cancel_requested"
	Restarted            Type = "job.execution_restarted"
	OutputExpiring       Type = "job.output_expiring"
	OutputDeleted        Type = "job.output_deleted"
	HeartbeatExempted    Type = "job.heartbeat_exempted"
	WorkerContacted      Type = "job.worker_contacted"
	LabelsChanged        Type = "job.labels_changed"
	Pinned               Type = "job.pinned"
	Unpinned             Type = "job.unpinned"
	ChildrenProgressed   Type = "job.children_progressed"
	ConstraintViolated   Type = "job.constraint_violated"
	ConditionsMet        Type = "job.conditions_met"
	ActionExecuted       Type = "job.action_executed"
	ActionFailed         Type = "job.action_failed"
	ExpectedTimeExceeded Type = "job.expected_time_exceeded"
	ZombieDetected       Type = "job.zombie_detected"
	ExportCompleted      Type = "export.completed"
	PackRunLog           Type = "pack_run.log"
	PackRunArtifact      Type = "pack_run.artifact"
)

// The types of events without a run.
const (
	ScheduleFired   Type = "schedule.fired"
	ScheduleSkipped Type = "schedule.skipped"
	PolicyUpdated   Type = "policy.updated"
	RelayUnreadable Type = "relay.unreadable"
	WebhookTest     Type = "webhook.test"
)

// Subject is the kind of object that an event is about.
type Subject string

// The subjects.
const (
	OfRun      Subject = "job"
	OfSchedule Subject = "schedule"
	OfPolicy   Subject = "policy"
	OfStream   Subject = "stream"
)

// Channel returns the channel of an event's notifications.
func (s Subject) Channel() string {
	switch s {
	case OfSchedule:
		return "orch.schedules"
	case OfPolicy:
		return "orch.policy"
	case OfRun, OfStream:
	}
	return "orch.jobs"
}

// Info describes a type.
type Info struct {
	Type    Type
	Subject Subject
	// When is a sentence that describes the event.
	When string
	// Once means that a run has at most one such event in each attempt. Attempt 0 is the time
	// before the first one.
	Once bool
}

// Of returns the description of a type; ok is false for an unknown one.
func Of(t Type) (info Info, ok bool) {
	info, ok = known()[t]
	return info, ok
}

// known returns the descriptions of types by name.
var known = sync.OnceValue(func() map[Type]Info {
	types := map[Type]Info{}
	for _, info := range All() {
		types[info.Type] = info
	}
	return types
})

// All returns the descriptions of all types, in the order of the catalogue.
func All() []Info {
	return []Info{
		{Accepted, OfRun, "A run was created.", true},
		{Due, OfRun, "The time of a run has come.", true},
		{Queued, OfRun, "A run waits for a slot, or for the platform to permit its start.", false},
		{ConditionsDue, OfRun, "The constraints of a run are to be evaluated.", true},
		{ConditionsTested, OfRun, "The constraints of a run are evaluated before its first attempt.", true},
		{ConstraintViolated, OfRun, "A run violates constraints of its job.", false},
		{ActionDue, OfRun, "An action on violated constraints is to be carried out.", true},
		{ActionStarted, OfRun, "An action on violated constraints has begun.", true},
		{ActionExecuted, OfRun, "An action of a job was carried out.", false},
		{ActionFailed, OfRun, "An action of a job failed, or does not apply.", false},
		{Admitted, OfRun, "An attempt has a slot; its machine is to be created.", true},
		{MachineCreated, OfRun, "The machine of an attempt was created.", false},
		{StartRefused, OfRun, "The platform did not create the machine of an attempt.", false},
		{Started, OfRun, "The machine of an attempt runs, or its worker called.", true},
		{WorkerContacted, OfRun, "The worker of an attempt called for the first time.", false},
		{HeartbeatExempted, OfRun, "The worker of an attempt has not called, so no heartbeats are expected of it.", false},
		{ZombieDetected, OfRun, "The heartbeats of a worker ended; its attempt ends.", true},
		{ExpectedTimeExceeded, OfRun, "An attempt takes longer than its job expects.", false},
		{CancelRequested, OfRun, "The end of a run was requested.", false},
		{AttemptEnded, OfRun, "An attempt ended; its machine and its output are to be settled.", true},
		{RetryScheduled, OfRun, "A failed attempt is to be retried after a delay.", true},
		{RetryDue, OfRun, "The delay before the next attempt is over.", true},
		{Restarted, OfRun, "The execution of a run ended without the run and was started again.", false},
		{Completed, OfRun, "A run succeeded.", true},
		{Skipped, OfRun, "A run was skipped: it ended without an attempt.", true},
		{Failed, OfRun, "A run failed.", true},
		{Cancelled, OfRun, "A run ended on request.", true},
		{Orphaned, OfRun, "The execution of a run ended twice without it.", true},
		{OutputExpiring, OfRun, "The output of a run is to be deleted.", false},
		{OutputDeleted, OfRun, "The output of a run was deleted.", false},
		{ExportCompleted, OfRun, "The output of an export was accepted and can be downloaded.", true},
		{PackRunLog, OfRun, "A part of the output of a program.", false},
		{PackRunArtifact, OfRun, "The files that a program produced.", true},
		{ScheduleFired, OfSchedule, "The schedule of a job fired, and its run was created.", false},
		{ScheduleSkipped, OfSchedule, "Firings of a job were skipped or missed.", false},
		{PolicyUpdated, OfPolicy, "A job, a pool, a model, a quota or a webhook was created, changed or deleted.", false},
		{RelayUnreadable, OfStream, "A record of the stream cannot be read; this event has its position.", false},
		{ConditionsMet, OfRun, "All constraints of a run are met after the wait of an action.", false},
		{WebhookTest, OfPolicy, "A webhook was tested. Only that webhook gets this event.", false},
		{LabelsChanged, OfRun, "A client changed the labels of a run.", false},
		{Pinned, OfRun, "A client pinned a run: it is kept until it is unpinned.", false},
		{Unpinned, OfRun, "A client unpinned a run.", false},
		{ChildrenProgressed, OfRun, "A further tenth of the children of a run has ended, or no further one starts.", false},
	}
}
