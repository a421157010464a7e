package contract

import "time"

// The values of HookBody.Hook. The responses to the first two decide whether the run is
// allowed.
const (
	HookBeforeRun   = "preRunHook"
	HookAfterRun    = "postRunHook"
	HookOnViolation = "onConstraintViolation"
	HookOnSuccess   = "onSuccess"
	HookOnFailure   = "onFailure"
	HookOnSkip      = "onSkip"
	HookOnRetry     = "onRetry"
	HookOnLate      = "onLate"
)

// HookBody is the body of a request to a hook or a webhook of a job.
type HookBody struct {
	// Hook is the hook of the job that is called.
	Hook string `json:"hook"`
	// Run is the run as returned by GET /v1/tasks/{task_id}.
	Run Task `json:"run"`
	// Job is null for a run without a stored job.
	Job *HookJob `json:"job"`
	// Constraint is the violated constraint, for HookOnViolation.
	Constraint *HookConstraint `json:"constraint,omitempty"`
}

// HookJob is the job of a run, at the version of the run.
type HookJob struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
}

// HookConstraint is a violated constraint.
type HookConstraint struct {
	Name string `json:"name"`
	// Message describes the observed value.
	Message   string    `json:"message"`
	Timestamp time.Time `json:"timestamp"`
	// Unchecked reports whether the constraint could not be checked.
	Unchecked bool `json:"unchecked,omitempty"`
}
