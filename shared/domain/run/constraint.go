package run

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Constraints are the conditions of a job on its runs: before the start, during the run, and
// after it. The limit of the run time is Policy.TimeLimit.
type Constraints struct {
	// MaxConcurrentRuns is the number of the job's slots; 0 means no limit.
	MaxConcurrentRuns int `json:"maxConcurrentRuns,omitempty"`
	// RequirePreviousSuccess: the newest earlier run of the job that is not IgnoredAsPrevious must
	// have ended with success.
	RequirePreviousSuccess bool `json:"requirePreviousSuccess,omitempty"`
	// CatchUpWindow is how long after its scheduled time a run may start; 0 means no limit.
	CatchUpWindow time.Duration `json:"catchUpWindow,omitempty"`
	// MaxExpectedRunTime is the run time after which an event is published; 0 means never.
	MaxExpectedRunTime time.Duration `json:"maxExpectedRunTime,omitempty"`
	PreRunHook         *Hook         `json:"preRunHook,omitempty"`
	PostRunHook        *Hook         `json:"postRunHook,omitempty"`
}

// BeforeRun reports whether a constraint is evaluated before the first attempt.
func (c *Constraints) BeforeRun() bool { return c.countBefore() > 0 }

// countBefore returns the number of constraints that are evaluated before the first attempt.
func (c *Constraints) countBefore() int {
	if c == nil {
		return 0
	}
	return count(c.MaxConcurrentRuns > 0, c.RequirePreviousSuccess, c.CatchUpWindow > 0, c.PreRunHook != nil)
}

// metAfter returns the number of constraints that are evaluated later and are not violated.
func (r Run) metAfter() int {
	c := r.Constraints
	if c == nil {
		return 0
	}
	return count(c.MaxExpectedRunTime > 0 && !r.violates(MaxExpectedRunTime), c.PostRunHook != nil && !r.violates(PostRunHook))
}

func count(set ...bool) (n int) {
	for _, is := range set {
		if is {
			n++
		}
	}
	return n
}

// Constraint is the name of a constraint.
type Constraint string

// The constraints, in the order of their evaluation.
const (
	MaxConcurrentRuns      Constraint = "maxConcurrentRuns"
	RequirePreviousSuccess Constraint = "requirePreviousSuccess"
	CatchUpWindow          Constraint = "catchUpWindow"
	PreRunHook             Constraint = "preRunHook"
	MaxExpectedRunTime     Constraint = "maxExpectedRunTime"
	MaxAllowedRunTime      Constraint = "maxAllowedRunTime"
	PostRunHook            Constraint = "postRunHook"
)

// ConstraintNames lists all constraints, in the order of their evaluation.
func ConstraintNames() []Constraint {
	return []Constraint{
		MaxConcurrentRuns, RequirePreviousSuccess, CatchUpWindow, PreRunHook,
		MaxExpectedRunTime, MaxAllowedRunTime, PostRunHook,
	}
}

// ConstraintViolation is a constraint that was not met.
type ConstraintViolation struct {
	Constraint Constraint `json:"constraint"`
	// Message is a sentence that says what was observed.
	Message string    `json:"message"`
	At      time.Time `json:"timestamp"`
	// Unchecked: the constraint could not be checked.
	Unchecked bool `json:"unchecked,omitempty"`
	// Awaits: the constraint can be met by the end of a run that holds a slot of the job or is
	// queued for one.
	Awaits bool `json:"awaits,omitempty"`
}

// String returns the constraint and the message.
func (v ConstraintViolation) String() string { return fmt.Sprintf("%s: %s", v.Constraint, v.Message) }

// windowEnd returns the latest start that the catchUpWindow allows; zero without a window or a
// scheduled time, and for a backfill.
func (r Run) windowEnd() time.Time {
	if c := r.Constraints; c != nil && c.CatchUpWindow > 0 && !r.ScheduledAt.IsZero() && !r.Backfills() {
		return r.ScheduledAt.Add(c.CatchUpWindow)
	}
	return time.Time{}
}

// Lateness returns the violation of catchUpWindow by the run at the time now. ok is false if
// the run is not too late.
func (r Run) Lateness(now time.Time) (v ConstraintViolation, ok bool) {
	end := r.windowEnd()
	if end.IsZero() || !now.After(end) {
		return v, false
	}
	late := now.Sub(r.ScheduledAt).Round(time.Second)
	return ConstraintViolation{
		Constraint: CatchUpWindow, At: now, Message: fmt.Sprintf("the run is %s late, want at most %s", late, r.Constraints.CatchUpWindow),
	}, true
}

// Hook is an HTTP address that Sortie asks about a run, or informs about it.
type Hook struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	// SecretRef is the name of the secret that signs requests; empty means unsigned.
	SecretRef string `json:"secretRef,omitempty"`
	// Timeout is the limit of one request, 1 s to 30 s.
	Timeout time.Duration `json:"timeout"`
	// Critical: a refusal or a failure makes the run Failed.
	Critical bool `json:"critical,omitempty"`
	// Notice is the content of a notification; nil for the standard body of a hook. For a service
	// SecretRef is the secret that it needs: an address, a key or a password.
	Notice *spec.Notice `json:"notice,omitempty"`
	// AllowUnavailable: if the hook cannot be reached, the run is allowed.
	AllowUnavailable bool `json:"allowUnavailable,omitempty"`
}

// Violation returns the violation of the hook constraint name by the answer a. ok is false if
// the answer allows the run, or if the hook is unavailable and AllowUnavailable is set.
func (h Hook) Violation(name Constraint, a HookAnswer, now time.Time) (v ConstraintViolation, ok bool) {
	if a.Allowed || a.Unavailable && h.AllowUnavailable {
		return ConstraintViolation{}, false
	}
	v = ConstraintViolation{Constraint: name, Message: "the hook refuses the run: " + a.Detail, At: now, Unchecked: a.Unavailable}
	if a.Unavailable {
		v.Message = "the hook cannot be reached: " + a.Detail
	}
	return v, true
}

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
