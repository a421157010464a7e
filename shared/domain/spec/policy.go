package spec

import (
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Policy limits a run. Durations are whole seconds.
type Policy struct {
	// StartTimeout is the maximum time from the create call until the machine is seen running.
	StartTimeout time.Duration `json:"startTimeout"`
	// TimeLimit is the maximum run time of an attempt. Nothing extends it.
	TimeLimit time.Duration `json:"timeLimit"`
	// HeartbeatInterval is how often a worker should call. HeartbeatTimeout is the maximum time
	// between two calls, after the first one.
	HeartbeatInterval time.Duration `json:"heartbeatInterval"`
	HeartbeatTimeout  time.Duration `json:"heartbeatTimeout"`
	// CancelGrace is how long a worker may take to end after a cancel request, at most
	// limit.CancelGrace.
	CancelGrace time.Duration `json:"cancelGrace"`
	// QueueTimeout is how long a run may wait for a slot.
	QueueTimeout time.Duration `json:"queueTimeout"`
	// Deadline is the maximum time from the creation of the run, or from its scheduled time if
	// that is later, to its end, over all attempts and waits; 0 means no limit.
	Deadline time.Duration `json:"deadline,omitzero"`
	// OutputRetention counts from the acceptance of the output, RecordRetention from the end of
	// the run.
	OutputRetention time.Duration `json:"outputRetention"`
	RecordRetention time.Duration `json:"recordRetention"`
	// LogRetention counts from the end of the run; 0 means RecordRetention.
	LogRetention time.Duration `json:"logRetention,omitzero"`
	// Newest is how many of the newest runs of the job stay after their retention; 0 means none.
	Newest int `json:"newest,omitzero"`
	// KeepDownloaded: a download does not shorten OutputRetention.
	KeepDownloaded bool  `json:"keepDownloaded,omitzero"`
	Retry          Retry `json:"retry"`
}

// Retry is a retry policy.
type Retry struct {
	// MaxAttempts is the maximum number of attempts whose machine started; 1 means no retry.
	MaxAttempts int `json:"maxAttempts"`
	// MaxFurtherStarts is the maximum number of retries after machines that never started; 0
	// means no retry. They use up no attempt.
	MaxFurtherStarts int           `json:"maxFurtherStarts"`
	InitialDelay     time.Duration `json:"initialDelay"`
	Multiplier       float64       `json:"multiplier"`
	MaxDelay         time.Duration `json:"maxDelay"`
	// Jitter is the fraction of the delay, 0 to 1, of which a random part is subtracted.
	Jitter float64 `json:"jitter"`
	// Categories are the fault categories that are retried; if empty, the fault decides (WC-6).
	// They do not apply to machines that never started or were stopped from outside.
	Categories []fault.Category `json:"categories,omitempty"`
}

// Allows reports whether the client allows retries of the category.
func (r Retry) Allows(c fault.Category) bool {
	return len(r.Categories) == 0 || slices.Contains(r.Categories, c)
}

// Delay returns the backoff after n failures (n >= 1): InitialDelay, multiplied by Multiplier
// for each further failure, at most MaxDelay. Jitter times rand (0 <= rand < 1) of it is
// subtracted. It is at least a second.
func (r Retry) Delay(n int, rand float64) time.Duration {
	delay := retry.Backoff{First: r.InitialDelay, Most: r.MaxDelay, Multiplier: r.Multiplier}.Delay(n - 1)
	return max(time.Duration(float64(delay)*(1-r.Jitter*rand)), time.Second)
}

// Violation is a rule that a policy breaks.
type Violation struct {
	// Field is the JSON path of the field in Policy, such as "retry.maxDelay".
	Field string
	// Problem says what is wrong and what would be valid.
	Problem string
}

// Validate returns the rules that the policy breaks, in the order of its fields.
func (p Policy) Validate() []Violation {
	var found []Violation
	broken := func(field, format string, args ...any) {
		found = append(found, Violation{field, fmt.Sprintf(format, args...)})
	}
	within := func(field string, value, least, most time.Duration) {
		if value < least || value > most || value%time.Second != 0 {
			broken(field, "%s is out of range, want %d to %d whole seconds", value, least/time.Second, most/time.Second)
		}
	}
	within("startTimeout", p.StartTimeout, time.Second, limit.TokenTTL)
	within("timeLimit", p.TimeLimit, 3*time.Second, limit.TimeLimit)
	within("heartbeatInterval", p.HeartbeatInterval, time.Second, limit.TimeLimit)
	within("heartbeatTimeout", p.HeartbeatTimeout, 2*time.Second, limit.TimeLimit)
	if p.HeartbeatTimeout < 2*p.HeartbeatInterval {
		broken("heartbeatTimeout", "%s is too short, want at least twice the heartbeat interval of %s", p.HeartbeatTimeout, p.HeartbeatInterval)
	}
	if p.HeartbeatTimeout >= p.TimeLimit {
		broken("heartbeatTimeout", "%s is too long, want less than the time limit of %s", p.HeartbeatTimeout, p.TimeLimit)
	}
	within("cancelGrace", p.CancelGrace, time.Second, limit.CancelGrace)
	within("queueTimeout", p.QueueTimeout, time.Second, limit.Duration)
	if p.Deadline != 0 {
		within("deadline", p.Deadline, limit.MinDeadline, limit.Duration)
	}
	within("outputRetention", p.OutputRetention, time.Second, limit.Retention)
	within("recordRetention", p.RecordRetention, time.Second, limit.Retention)
	if p.LogRetention != 0 {
		within("logRetention", p.LogRetention, time.Second, limit.Retention)
	}
	if p.RecordRetention < p.LogRetention {
		broken("recordRetention", "%s is too short, want at least the log retention of %s", p.RecordRetention, p.LogRetention)
	}
	if p.RecordRetention < p.OutputRetention {
		broken("recordRetention", "%s is too short, want at least the output retention of %s", p.RecordRetention, p.OutputRetention)
	}
	return append(found, p.Retry.validate()...)
}

func (r Retry) validate() []Violation {
	var found []Violation
	broken := func(field, format string, args ...any) {
		found = append(found, Violation{"retry." + field, fmt.Sprintf(format, args...)})
	}
	if r.MaxAttempts < 1 || r.MaxAttempts > limit.Attempts {
		broken("maxAttempts", "%d is out of range, want 1 to %d", r.MaxAttempts, limit.Attempts)
	}
	if r.MaxFurtherStarts < 0 || r.MaxFurtherStarts > limit.Attempts {
		broken("maxFurtherStarts", "%d is out of range, want 0 to %d", r.MaxFurtherStarts, limit.Attempts)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"initialDelay", r.InitialDelay}, {"maxDelay", r.MaxDelay}} {
		if d.value < time.Second || d.value > limit.TimeLimit || d.value%time.Second != 0 {
			broken(d.field, "%s is out of range, want 1 to %d whole seconds", d.value, limit.TimeLimit/time.Second)
		}
	}
	if r.MaxDelay < r.InitialDelay {
		broken("maxDelay", "%s is too short, want at least the initial delay of %s", r.MaxDelay, r.InitialDelay)
	}
	if r.Multiplier < 1 || r.Multiplier > limit.Multiplier {
		broken("multiplier", "%g is out of range, want 1 to %g", r.Multiplier, limit.Multiplier)
	}
	if r.Jitter < 0 || r.Jitter > 1 {
		broken("jitter", "%g is out of range, want 0 to 1", r.Jitter)
	}
	for _, c := range r.Categories {
		if c == fault.CategoryCancel || !slices.Contains(fault.Categories(), c) {
			broken("categories", "unknown or final category %q, want categories that can be retried", c)
		}
	}
	return found
}

// Given names the fields that a request or a setting sets explicitly.
type Given struct{ HeartbeatInterval, HeartbeatTimeout, RecordRetention, InitialDelay, MaxDelay bool }

// Fit adapts the fields that are not given to the given ones. For example, a request that
// shortens only the time limit need not set the heartbeat fields.
func (p *Policy) Fit(given Given) {
	if given.HeartbeatInterval || given.HeartbeatTimeout || p.HeartbeatTimeout >= p.TimeLimit {
		p.fitHeartbeats(given)
	}
	if !given.RecordRetention {
		p.RecordRetention = max(p.RecordRetention, p.OutputRetention, p.LogRetention)
	}
	if !given.MaxDelay {
		p.Retry.MaxDelay = max(p.Retry.MaxDelay, p.Retry.InitialDelay)
	}
	if !given.InitialDelay {
		p.Retry.InitialDelay = min(p.Retry.InitialDelay, p.Retry.MaxDelay)
	}
}

func (p *Policy) fitHeartbeats(given Given) {
	switch {
	case given.HeartbeatTimeout:
	case given.HeartbeatInterval:
		p.HeartbeatTimeout = 3 * p.HeartbeatInterval
	default:
		p.HeartbeatTimeout = max(min(p.HeartbeatTimeout, p.TimeLimit-time.Second), 2*time.Second)
	}
	if !given.HeartbeatInterval {
		p.HeartbeatInterval = max(min(p.HeartbeatInterval, p.HeartbeatTimeout/3), time.Second).Truncate(time.Second)
	}
}
