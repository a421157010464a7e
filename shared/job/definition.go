package job

import (
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// Definition is what a job document says, as it was written: absent members have
// defaults, which Work, Policy, Constraints and Actions apply. Parse reads it and
// checks the types of its members, Validate checks their values.
type Definition struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	// Pool is where the runs queue; empty is the default pool.
	Pool string `json:"pool,omitempty"`
	// Export makes the runs exports; nil means that they run the program of Image. An
	// export without an image uses that of the deployment.
	Export  *Export             `json:"export,omitempty"`
	Image   string              `json:"image,omitempty"`
	Command []string            `json:"command,omitempty"`
	Env     map[string]Variable `json:"env,omitempty"`
	// Input is the standard input of the program; empty means no input.
	Input      string         `json:"input,omitempty"`
	Output     *Output        `json:"output,omitempty"`
	Completion run.Completion `json:"completion,omitempty"`
	ExitCodes  *run.ExitCodes `json:"exitCodes,omitempty"`

	// Schedule is in the syntax of ParseSchedule; empty means that only requests run
	// the job. TimeZone is a name of the IANA database; empty is UTC. Each firing is
	// delayed by a part of Jitter that depends on the job alone.
	Schedule string   `json:"schedule,omitempty"`
	TimeZone string   `json:"timeZone,omitempty"`
	Jitter   Duration `json:"jitter,omitempty"`
	// Missed says which of the times that were missed start a run; empty is MissedLatest.
	// StartingDeadline is how late a firing may start, after its jitter; empty is
	// DefaultDeadline.
	Missed           Missed   `json:"missed,omitempty"`
	StartingDeadline Duration `json:"startingDeadline,omitempty"`

	Constraints *Constraints `json:"constraints,omitempty"`
	Actions     *Actions     `json:"actions,omitempty"`
	RetryConfig *RetryConfig `json:"retryConfig,omitempty"`
	Policy      *Policy      `json:"policy,omitempty"`

	Logs     Logs         `json:"logs,omitempty"`
	Priority run.Priority `json:"priority,omitempty"`
	// ConcurrencyKey groups the runs of all jobs that share a limit; empty means no
	// group.
	ConcurrencyKey string       `json:"concurrencyKey,omitempty"`
	Concurrency    *Concurrency `json:"concurrency,omitempty"`
	Resources      *Resources   `json:"resources,omitempty"`
	Region         string       `json:"region,omitempty"`
	// PodSpec is a pod specification of Kubernetes: a JSON object.
	PodSpec json.RawMessage `json:"podSpec,omitempty"`
	// BucketCredentials is run.BucketVariables or run.BucketEnvelope; see run.Work.
	BucketCredentials string `json:"bucketCredentials,omitempty"`
}

// Duration is a duration in the syntax of time.ParseDuration, such as "1h30m". Empty
// means absent.
type Duration string

// Value returns the duration; 0 if it is absent or malformed.
func (d Duration) Value() time.Duration {
	value, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return value
}

// Variable is the value of an environment variable: a string in a document, or an
// object with the name of a secret.
type Variable run.Variable

// Output is a file that the program writes. It is kept and can be downloaded.
type Output struct {
	// Path is below the working directory: relative to it, or absolute.
	Path string `json:"path"`
	// FileName is the name of the download; empty is the last element of Path.
	FileName string `json:"fileName,omitempty"`
	// ContentType is a media type; empty is application/octet-stream.
	ContentType string `json:"contentType,omitempty"`
}

// Constraints are what a job demands of its runs; see run.Constraints.
type Constraints struct {
	MaxConcurrentRuns      *int     `json:"maxConcurrentRuns,omitempty"`
	RequirePreviousSuccess *bool    `json:"requirePreviousSuccess,omitempty"`
	CatchUp                *bool    `json:"catchUp,omitempty"`
	CatchUpWindow          Duration `json:"catchUpWindow,omitempty"`
	MaxExpectedRunTime     Duration `json:"maxExpectedRunTime,omitempty"`
	// MaxAllowedRunTime is the same limit as Policy.TimeLimitSeconds.
	MaxAllowedRunTime Duration    `json:"maxAllowedRunTime,omitempty"`
	PreRunHook        *Hook       `json:"preRunHook,omitempty"`
	PostRunHook       *Hook       `json:"postRunHook,omitempty"`
	OnUnavailable     Unavailable `json:"onUnavailable,omitempty"`
}

// Missed is the rule for times that were missed. It does not concern the times of a pause.
type Missed string

// The rules for times that were missed.
const (
	MissedLatest Missed = "latest" // the newest time that is due starts
	MissedAll    Missed = "all"    // each starts, the oldest first
	MissedNone   Missed = "none"   // none starts
)

// Unavailable is the rule for what cannot be checked; empty is UnavailableSkip.
type Unavailable string

// The rules for what cannot be checked.
const (
	UnavailableSkip  Unavailable = "skip"  // it counts as violated
	UnavailableAllow Unavailable = "allow" // it counts as met
)

// Hook is an HTTPS address that decides whether a run may start, or learns that it
// has ended.
type Hook struct {
	URL           string            `json:"url"`
	Headers       map[string]string `json:"headers,omitempty"`
	SecretRef     string            `json:"secretRef,omitempty"`
	Timeout       Duration          `json:"timeout,omitempty"`
	Critical      *bool             `json:"critical,omitempty"`
	OnUnavailable Unavailable       `json:"onUnavailable,omitempty"`
}

// Actions are what a job does about violated constraints and the end of a run.
type Actions struct {
	OnConstraintViolation *Action `json:"onConstraintViolation,omitempty"`
	// OnViolationOf has the actions of single constraints.
	OnViolationOf map[run.Constraint]Action `json:"onViolationOf,omitempty"`
	OnFailure     *Action                   `json:"onFailure,omitempty"`
	OnSuccess     *Action                   `json:"onSuccess,omitempty"`
	// OnSkip follows a run, or firings, that were skipped.
	OnSkip *Action `json:"onSkip,omitempty"`
}

// Action is an action with its parameters, which are strings or numbers. Those of
// trigger_job include "parameters", an object: each variable is a string, or
// {"fromOutput": true}.
type Action struct {
	Type       run.ActionType `json:"type"`
	Critical   *bool          `json:"critical,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
}

// RetryConfig is the retry policy of the runs.
type RetryConfig struct {
	// MaxRetries is the number of attempts less one.
	MaxRetries        *int     `json:"maxRetries,omitempty"`
	InitialDelay      Duration `json:"initialDelay,omitempty"`
	BackoffMultiplier *float64 `json:"backoffMultiplier,omitempty"`
	MaxDelay          Duration `json:"maxDelay,omitempty"`
}

// Policy has the limits of a run in whole seconds; see run.Policy.
type Policy struct {
	TimeLimitSeconds         *int `json:"timeLimitSeconds,omitempty"`
	StartTimeoutSeconds      *int `json:"startTimeoutSeconds,omitempty"`
	HeartbeatIntervalSeconds *int `json:"heartbeatIntervalSeconds,omitempty"`
	HeartbeatTimeoutSeconds  *int `json:"heartbeatTimeoutSeconds,omitempty"`
	CancelGraceSeconds       *int `json:"cancelGraceSeconds,omitempty"`
}

// Logs says whether the output of the program is stored; empty is LogsKeep.
type Logs string

// The two values of Logs.
const (
	LogsKeep Logs = "keep"
	LogsDrop Logs = "drop"
)

// Concurrency has the limits of ConcurrencyKey; see run.Concurrency.
type Concurrency struct {
	// Limit is absent for 1.
	Limit *int `json:"limit,omitempty"`
	// QueueLimit is absent for no limit.
	QueueLimit *int         `json:"queueLimit,omitempty"`
	Overflow   run.Overflow `json:"overflow,omitempty"`
}

// Resources are the size of a machine. Absent members have the values of the
// deployment.
type Resources struct {
	CPUs     *int `json:"cpus,omitempty"`
	MemoryMB *int `json:"memoryMB,omitempty"`
}
