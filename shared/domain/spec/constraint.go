package spec

import (
	"fmt"
	"time"
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
func (c *Constraints) BeforeRun() bool { return c.CountBefore() > 0 }

// CountBefore returns the number of constraints that are evaluated before the first attempt.
func (c *Constraints) CountBefore() int {
	if c == nil {
		return 0
	}
	return count(c.MaxConcurrentRuns > 0, c.RequirePreviousSuccess, c.CatchUpWindow > 0, c.PreRunHook != nil)
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
	Notice *Notice `json:"notice,omitempty"`
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

// HookAnswer is the answer of a hook about a run.
type HookAnswer struct {
	// Allowed: the hook allows the run. Unavailable: the hook could not be called. At most one
	// is set.
	Allowed, Unavailable bool
	// Detail is the reason of the hook, or why it could not be called.
	Detail string
}
