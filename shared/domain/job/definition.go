package job

import (
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Definition is the content of a job document. Absent fields get their defaults in Run. Parse
// reads a definition and checks the types of its fields; Validate checks their values.
type Definition struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	// Labels are inherited by the runs; see package label.
	Labels map[string]string `json:"labels,omitempty"`
	// Pool is the pool in which the runs queue; empty means the default pool.
	Pool string `json:"pool,omitempty"`
	// Export makes the runs exports; nil means that they run the program of Image. An export
	// without an image uses that of the deployment.
	Export  *Export             `json:"export,omitempty"`
	Image   string              `json:"image,omitempty"`
	Command []string            `json:"command,omitempty"`
	Env     map[string]Variable `json:"env,omitempty"`
	// Input is the standard input of the program; empty means no input.
	Input string `json:"input,omitempty"`
	// Inputs declares values that each run can have, by name.
	Inputs     map[string]Input `json:"inputs,omitempty"`
	Output     *Output          `json:"output,omitempty"`
	Completion spec.Completion  `json:"completion,omitempty"`
	ExitCodes  *spec.ExitCodes  `json:"exitCodes,omitempty"`

	// Schedule has the syntax of ParseSchedule; empty means that the job runs only on request.
	// TimeZone is a name of the IANA database; empty means UTC. Each firing is delayed by a
	// fixed part of Jitter; see Job.Delay.
	Schedule string   `json:"schedule,omitempty"`
	TimeZone string   `json:"timeZone,omitempty"`
	Jitter   Duration `json:"jitter,omitempty"`
	// Schedules are several expressions in place of Schedule, without @every.
	Schedules []string `json:"schedules,omitempty"`
	// StartAt and EndAt limit the firings to StartAt <= t < EndAt: a time of RFC 3339, or the
	// begin of a date in TimeZone. Empty means no limit.
	StartAt string `json:"startAt,omitempty"`
	EndAt   string `json:"endAt,omitempty"`
	// Calendars have dates on which cron expressions do not fire.
	Calendars []Calendar `json:"calendars,omitempty"`
	// After lists the jobs that this one comes after. It has then no schedule.
	After []Dependency `json:"after,omitempty"`
	// Sensor names the items that start runs, besides the schedule; nil for none.
	Sensor *sensor.Settings `json:"sensor,omitempty"`
	// Items or Matrix make each run the parent of children, one for each item or combination; see
	// package fan. Matrix has the values of each axis.
	Items  *Items                  `json:"items,omitempty"`
	Matrix map[string][]spec.Value `json:"matrix,omitempty"`
	// MaxParallel, MaxFailures and FailFast are those of fan.Spec.
	MaxParallel *int  `json:"maxParallel,omitempty"`
	MaxFailures *int  `json:"maxFailures,omitempty"`
	FailFast    *bool `json:"failFast,omitempty"`
	// Missed says which missed times start a run; empty means MissedLatest. StartingDeadline is
	// how late a firing may start, after its jitter; empty means DefaultDeadline.
	Missed           Missed   `json:"missed,omitempty"`
	StartingDeadline Duration `json:"startingDeadline,omitempty"`

	Constraints *Constraints `json:"constraints,omitempty"`
	Actions     *Actions     `json:"actions,omitempty"`
	RetryConfig *RetryConfig `json:"retryConfig,omitempty"`
	Policy      *Policy      `json:"policy,omitempty"`
	// Deadline is spec.Policy.Deadline; empty means no limit.
	Deadline Duration `json:"deadline,omitempty"`

	Retention *Retention `json:"retention,omitempty"`

	Logs     Logs          `json:"logs,omitempty"`
	Priority spec.Priority `json:"priority,omitempty"`
	// ConcurrencyKey groups runs of all jobs that share a limit; empty means no group.
	ConcurrencyKey string       `json:"concurrencyKey,omitempty"`
	Concurrency    *Concurrency `json:"concurrency,omitempty"`
	Resources      *Resources   `json:"resources,omitempty"`
	Region         string       `json:"region,omitempty"`
	// PodSpec is a Kubernetes pod specification (a JSON object).
	PodSpec json.RawMessage `json:"podSpec,omitempty"`
	// BucketCredentials is spec.BucketVariables or spec.BucketEnvelope; see spec.Work.
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

// Variable is the value of an environment variable. In a document it is a string, or an object
// with the name of a secret.
type Variable spec.Variable

// Output is a file that the program writes. It is stored and can be downloaded.
type Output struct {
	// Path is a path below the working directory, relative or absolute.
	Path string `json:"path"`
	// FileName is the name of the download; empty means the last element of Path.
	FileName string `json:"fileName,omitempty"`
	// ContentType is a media type; empty means application/octet-stream.
	ContentType string `json:"contentType,omitempty"`
}

// Constraints are the conditions of a job on its runs; see spec.Constraints.
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

// Missed is the rule for missed times. It does not apply to times during a pause.
type Missed string

// The rules for missed times.
const (
	MissedLatest Missed = "latest" // start the newest due time
	MissedAll    Missed = "all"    // start each time, oldest first
	MissedNone   Missed = "none"   // start none
)

// Unavailable is the rule for a constraint that cannot be checked; empty means UnavailableSkip.
type Unavailable string

// The rules for constraints that cannot be checked.
const (
	UnavailableSkip  Unavailable = "skip"  // the constraint counts as violated
	UnavailableAllow Unavailable = "allow" // the constraint counts as met
)

// Hook is an HTTPS address that decides whether a run may start, or is informed of its end.
type Hook struct {
	URL           string            `json:"url"`
	Headers       map[string]string `json:"headers,omitempty"`
	SecretRef     string            `json:"secretRef,omitempty"`
	Timeout       Duration          `json:"timeout,omitempty"`
	Critical      *bool             `json:"critical,omitempty"`
	OnUnavailable Unavailable       `json:"onUnavailable,omitempty"`
}

// Actions are a job's reactions to violated constraints and to the events of a run.
type Actions struct {
	OnConstraintViolation *Action `json:"onConstraintViolation,omitempty"`
	// OnViolationOf has the actions for individual constraints.
	OnViolationOf map[spec.Constraint]Action `json:"onViolationOf,omitempty"`
	OnFailure     ActionList                 `json:"onFailure,omitempty"`
	OnSuccess     ActionList                 `json:"onSuccess,omitempty"`
	// OnSkip follows a skipped run, or skipped firings.
	OnSkip ActionList `json:"onSkip,omitempty"`
	// OnRetry follows each attempt that is retried, OnLate the excess of MaxExpectedRunTime.
	OnRetry ActionList `json:"onRetry,omitempty"`
	OnLate  ActionList `json:"onLate,omitempty"`
}

// Action is an action with its parameters: strings or numbers. trigger_job also has
// "parameters", an object of variables. Each variable is a string or {"fromOutput": true}.
type Action struct {
	Type       spec.ActionType `json:"type"`
	Critical   *bool           `json:"critical,omitempty"`
	Parameters map[string]any  `json:"parameters,omitempty"`
}

// RetryConfig is the retry policy of the runs.
type RetryConfig struct {
	// MaxRetries is the maximum number of attempts, minus one.
	MaxRetries        *int     `json:"maxRetries,omitempty"`
	InitialDelay      Duration `json:"initialDelay,omitempty"`
	BackoffMultiplier *float64 `json:"backoffMultiplier,omitempty"`
	MaxDelay          Duration `json:"maxDelay,omitempty"`
}

// Policy has the limits of a run, in whole seconds; see spec.Policy.
type Policy struct {
	TimeLimitSeconds         *int `json:"timeLimitSeconds,omitempty"`
	StartTimeoutSeconds      *int `json:"startTimeoutSeconds,omitempty"`
	HeartbeatIntervalSeconds *int `json:"heartbeatIntervalSeconds,omitempty"`
	HeartbeatTimeoutSeconds  *int `json:"heartbeatTimeoutSeconds,omitempty"`
	CancelGraceSeconds       *int `json:"cancelGraceSeconds,omitempty"`
}

// Retention says how long the parts of runs are kept. Empty fields have the values of the
// deployment. With it, a download does not shorten the retention of an output.
type Retention struct {
	// Outputs counts from the acceptance of the output, Logs and Records from the end of the
	// run. Logs are kept as long as records by default.
	Outputs Duration `json:"outputs,omitempty"`
	Logs    Duration `json:"logs,omitempty"`
	Records Duration `json:"records,omitempty"`
	// Newest is spec.Policy.Newest; nil for 0.
	Newest *int `json:"newest,omitempty"`
}

// Logs says whether the output of the program is stored; empty means LogsKeep.
type Logs string

// The two values of Logs.
const (
	LogsKeep Logs = "keep"
	LogsDrop Logs = "drop"
)

// Concurrency has the limits of ConcurrencyKey; see spec.Concurrency.
type Concurrency struct {
	// Limit is nil for 1.
	Limit *int `json:"limit,omitempty"`
	// QueueLimit is nil for no limit.
	QueueLimit *int          `json:"queueLimit,omitempty"`
	Overflow   spec.Overflow `json:"overflow,omitempty"`
}

// Resources are the size of a machine. Absent fields have the values of the deployment.
type Resources struct {
	CPUs     *int `json:"cpus,omitempty"`
	MemoryMB *int `json:"memoryMB,omitempty"`
}
