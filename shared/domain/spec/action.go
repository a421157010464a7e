package spec

import (
	"cmp"
	"time"
)

// Actions are a job's reactions to violated constraints and to the end of a run.
type Actions struct {
	// OnViolation applies to the constraints without an action in Each.
	OnViolation *Action               `json:"onViolation,omitempty"`
	Each        map[Constraint]Action `json:"each,omitempty"`
	OnFailure   *Action               `json:"onFailure,omitempty"`
	OnSuccess   *Action               `json:"onSuccess,omitempty"`
	// OnSkip follows a skipped run, instead of OnSuccess.
	OnSkip *Action `json:"onSkip,omitempty"`
	// OnRetry follows each attempt that is retried, OnLate the excess of MaxExpectedRunTime.
	OnRetry *Action `json:"onRetry,omitempty"`
	OnLate  *Action `json:"onLate,omitempty"`
	// Further are the second and later actions of an event, which follow the first one.
	Further map[EndAction][]Action `json:"further,omitempty"`
	// Exec: trigger_job may run programs of the host, because the client that stored the job
	// had the scope exec. Run.Exec must be set too.
	Exec bool `json:"exec,omitempty"`
}

// Action is one action of a job.
type Action struct {
	Type ActionType `json:"type"`
	// Critical: the failure of the action makes the run Failed.
	Critical bool `json:"critical,omitempty"`
	// Delay is the time between two checks of retry_later; 0 means the default. MaxRetries is
	// the maximum number of further checks; 0 means no limit.
	Delay      time.Duration `json:"delay,omitempty"`
	MaxRetries int           `json:"maxRetries,omitempty"`
	// Limit is the maximum duration of retry_later, kill_old and wait; 0 means the default.
	Limit time.Duration `json:"limit,omitempty"`
	// Hook is the address of a webhook or a notification.
	Hook *Hook `json:"hook,omitempty"`
	// JobID is the job that trigger_job runs. Parameters are the variables for that run.
	JobID      string                      `json:"jobId,omitempty"`
	Parameters map[string]TriggerParameter `json:"parameters,omitempty"`
}

// ActionType is the type of an action.
type ActionType string

// The types of actions.
const (
	ActionSkip       ActionType = "skip"
	ActionRetryLater ActionType = "retry_later"
	ActionKillOld    ActionType = "kill_old"
	ActionWait       ActionType = "wait"
	ActionWebhook    ActionType = "webhook"
	ActionTriggerJob ActionType = "trigger_job"
	ActionNotify     ActionType = "notify"
)

// ViolationTypes lists the types of actions on violated constraints.
func ViolationTypes() []ActionType {
	return []ActionType{ActionSkip, ActionRetryLater, ActionKillOld, ActionWait, ActionWebhook, ActionTriggerJob}
}

// ActionTypes lists all types of actions.
func ActionTypes() []ActionType { return append(ViolationTypes(), ActionNotify) }

// TriggerParameter is an environment variable of a triggered run: a text, or the output of the
// run that triggers it.
type TriggerParameter struct {
	Text       string `json:"text,omitempty"`
	FromOutput bool   `json:"fromOutput,omitempty"`
}

// The default limits of a wait and the default delay of an action.
const (
	ActionLimit = 24 * time.Hour
	ActionDelay = time.Minute
	KillLimit   = 10 * time.Minute
)

// KillSlack is added to the grace period of a run: kill_old waits at least that long.
const KillSlack = time.Minute

// MostWait returns how long a run may wait for the action. grace is the grace period of the
// runs of its job.
func (a Action) MostWait(grace time.Duration) time.Duration {
	if a.Type == ActionKillOld {
		return max(cmp.Or(a.Limit, KillLimit), grace+KillSlack)
	}
	return cmp.Or(a.Limit, ActionLimit)
}

// RetryDelay returns the time between two checks of retry_later.
func (a Action) RetryDelay() time.Duration { return cmp.Or(a.Delay, ActionDelay) }

// Waits reports whether the run waits until its constraints are met.
func (t ActionType) Waits() bool {
	return t == ActionRetryLater || t == ActionKillOld || t == ActionWait
}

// Follows reports whether an action of the type can follow an event of a run. The other types
// are only for violated constraints.
func (t ActionType) Follows() bool {
	return t == ActionWebhook || t == ActionTriggerJob || t == ActionNotify
}

// PassesOver reports whether the action only reports a violation and lets the run start.
func (t ActionType) PassesOver() bool { return t == ActionWebhook || t == ActionTriggerJob }
