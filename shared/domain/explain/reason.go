package explain

// Reason says why a run is in its state. The constants are the complete list.
type Reason string

// The reasons of a run that has not ended, in the order of a run's life.
const (
	// Scheduled: the run is PreRun, and its scheduled time has not been reached.
	Scheduled Reason = "scheduled"
	// AdmissionDue: the run is about to request a slot of its pool. Nothing blocks it yet.
	AdmissionDue Reason = "admission_due"
	// ExecutionLate: the run's execution has not acted in time. The sweep checks it.
	ExecutionLate Reason = "execution_late"
	// PoolUnknown: the run is queued, and its pool was deleted.
	PoolUnknown Reason = "pool_unknown"
	// PoolDraining: the run is queued and its pool starts no runs, or its worker is asked to
	// end because the drain deadline has passed.
	PoolDraining Reason = "pool_draining"
	// KeyFull: the run is queued for a slot of its concurrencyKey, and all slots are held.
	KeyFull Reason = "key_full"
	// PoolFull: the run is queued, and all slots of its pool are held.
	PoolFull Reason = "pool_full"
	// StartsPaced: the start limit of the platform permits no start now, and the run waits for
	// the next permitted one.
	StartsPaced Reason = "starts_paced"
	// SlotGranted: a slot of the pool is free, and is being granted to the runs at the head of
	// the queue.
	SlotGranted Reason = "slot_granted"
	// ConstraintsChecked: the run holds its pool's slot, and its constraints are being checked.
	ConstraintsChecked Reason = "constraints_checked"
	// ActionRunning: an action on a violated constraint is being carried out.
	ActionRunning Reason = "action_running"
	// ActionDelayed: the action waits until the next check of the constraints.
	ActionDelayed Reason = "action_delayed"
	// JobFull: the run waits for a slot of its job, because of wait or kill_old, or after
	// another action on maxConcurrentRuns.
	JobFull Reason = "job_full"
	// StartRefused: the platform did not create the machine. The start is repeated.
	StartRefused Reason = "start_refused"
	// MachineStarting: the machine was requested, and was not seen running yet.
	MachineStarting Reason = "machine_starting"
	// WaitingForCluster: the machine was created, and the cluster reports why it has not
	// started: no node has capacity for its pod, or another controller has suspended its Job.
	WaitingForCluster Reason = "waiting_for_cluster"
	// Running: the machine runs.
	Running Reason = "running"
	// Cancelling: the machine runs, a cancel was requested, and the worker is in its grace
	// period.
	Cancelling Reason = "cancelling"
	// CleaningUp: the attempt has ended. Its machine is being removed and its output checked.
	CleaningUp Reason = "cleaning_up"
	// RetryDelayed: the attempt failed, and the next one is delayed.
	RetryDelayed Reason = "retry_delayed"
	// FallingBack: the platform of the pool started no machine for the attempt, or its engine did
	// not serve it. The next attempt uses a fallback pool.
	FallingBack Reason = "falling_back"
)

// The reasons of runs with children, and of these.
const (
	// ChildrenRunning: children of the run are active, or are being created.
	ChildrenRunning Reason = "children_running"
	// AwaitsTurn: the child has no run yet, because maxParallel others are active.
	AwaitsTurn Reason = "awaits_turn"
)

// The reasons of a run that does not exist yet. Only Plan returns them.
const (
	// StartsNow: nothing blocks the run.
	StartsNow Reason = "starts_now"
	// QueueFull: the request would be refused because a queue is full.
	QueueFull Reason = "queue_full"
)

// The reasons of a run that has ended.
const (
	// Succeeded: the run is Completed.
	Succeeded Reason = "succeeded"
	// Skipped: the run was skipped because of a violated constraint.
	Skipped Reason = "skipped"
	// KeyOverflowed: the run was skipped because the queue of its concurrencyKey was full.
	KeyOverflowed Reason = "key_overflowed"
	// FiringsMissed: the run is the record of skipped firings.
	FiringsMissed Reason = "firings_missed"
	// Failed: the run is Failed.
	Failed Reason = "failed"
	// Cancelled: the run was cancelled on request.
	Cancelled Reason = "cancelled"
	// Orphaned: the run's execution was lost twice.
	Orphaned Reason = "orphaned"
)

// PlanReasons lists the reasons that only Plan returns.
func PlanReasons() []Reason { return []Reason{StartsNow, QueueFull} }

// Reasons lists the reasons of runs that exist.
func Reasons() []Reason {
	return []Reason{
		Scheduled, AdmissionDue, ExecutionLate, PoolUnknown, PoolDraining, KeyFull, PoolFull, StartsPaced, SlotGranted, ConstraintsChecked,
		ActionRunning, ActionDelayed, JobFull, StartRefused, MachineStarting, WaitingForCluster, Running, Cancelling, CleaningUp, RetryDelayed, FallingBack,
		Succeeded, Skipped, KeyOverflowed, FiringsMissed, Failed, Cancelled, Orphaned,
	}
}
