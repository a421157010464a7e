package contract

import (
	"encoding/json"
	"time"
)

// EnvelopeVariable is the environment variable that has a worker's
// TaskEnvelope as JSON.
const EnvelopeVariable = "TASK_ENVELOPE"

// TaskEnvelope is what a worker is started with (WC-8), and
// beside it where its output and its log may be put. It holds a token and
// presigned addresses: it is never logged.
type TaskEnvelope struct {
	TaskID string `json:"taskId"`
	RunID  string `json:"runId"`
	// AssetID is what the task is about, for an export the PI.
	AssetID string `json:"assetId,omitempty"`
	// TaskKey is what is to be done with it, for an export "export/mods".
	TaskKey       string    `json:"taskKey,omitempty"`
	TenantID      string    `json:"tenantId"`
	WorkspaceID   string    `json:"workspaceId"`
	CorrelationID string    `json:"correlationId,omitempty"`
	Attempt       int       `json:"attempt"` // from 1
	Resources     Resources `json:"resources,omitzero"`
	EnqueuedAt    time.Time `json:"enqueuedAt,omitzero"`
	// Deadline is when the attempt is ended by force, with nothing that extends
	// it; zero where there is none.
	Deadline time.Time `json:"deadline,omitzero"`

	// CallbackBaseURL is what /v1/tasks/{taskId}/started and the others are
	// appended to; it may end in a slash.
	CallbackBaseURL string    `json:"callbackBaseUrl"`
	TaskToken       string    `json:"taskToken"`
	TokenExpiresAt  time.Time `json:"tokenExpiresAt"`
	// The three times are milliseconds. 0 is the contract's default: 30,000,
	// 90,000 and 30,000.
	HeartbeatIntervalMS int64 `json:"heartbeatIntervalMs,omitempty"`
	HeartbeatTimeoutMS  int64 `json:"heartbeatTimeoutMs,omitempty"`
	CancelGracePeriodMS int64 `json:"cancelGracePeriodMs,omitempty"`

	// Output and Log are absent where there is no bucket to put them in.
	Output *Upload `json:"output,omitempty"`
	Log    *Upload `json:"log,omitempty"`
}

// The contract's defaults of an envelope's times, in milliseconds.
const (
	DefaultHeartbeatIntervalMS = 30_000
	DefaultHeartbeatTimeoutMS  = 90_000
	DefaultCancelGracePeriodMS = 30_000
)

// Resources are what the machine has; 0 is unknown or unlimited.
type Resources struct {
	CPUMillicores int64 `json:"cpuMillicores,omitempty"`
	MemoryBytes   int64 `json:"memoryBytes,omitempty"`
	// TimeoutMS is the attempt's time limit from its start.
	TimeoutMS int64 `json:"timeoutMs,omitempty"`
}

// Upload is where a worker may put one object, with one PUT of its bytes.
type Upload struct {
	// URL is presigned: whoever has it may write the object until ExpiresAt.
	URL string `json:"url"`
	// Headers are part of what was signed and go with the PUT as they are.
	Headers map[string]string `json:"headers,omitempty"`
	// Key is where the object then lies in the bucket, and what
	// TaskOutput.OutputPath says of it.
	Key       string    `json:"key"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// TaskStarted is the body of POST /v1/tasks/{task_id}/started.
type TaskStarted struct {
	Attempt   int       `json:"attempt"`
	WorkerID  string    `json:"workerId"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// HandlesSigterm says that SIGTERM is a cancel to this worker: it ends its
	// work and sends completed within the grace period.
	HandlesSigterm bool `json:"handlesSigterm,omitempty"`
}

// TaskHeartbeat is the body of POST /v1/tasks/{task_id}/heartbeat.
type TaskHeartbeat struct {
	Attempt  int    `json:"attempt"`
	WorkerID string `json:"workerId"`
	// HeartbeatAt is the worker's clock; zero leaves it to the time of receipt.
	HeartbeatAt time.Time `json:"heartbeatAt,omitzero"`
	// ProgressPct is 0 to 100; absent keeps what was told before.
	ProgressPct *int `json:"progressPct,omitempty"`
	// Message is cut at 2 KiB; empty keeps what was told before.
	Message string `json:"message,omitempty"`
}

// The outcomes of an attempt, and its final states.
const (
	OutcomeSucceeded = "SUCCEEDED"
	OutcomeFailed    = "FAILED"
	OutcomeCancelled = "CANCELLED"
)

// TaskCompleted is the body of POST /v1/tasks/{task_id}/completed. Output
// belongs to SUCCEEDED, Error to FAILED, the last two to CANCELLED.
type TaskCompleted struct {
	Attempt     int         `json:"attempt"`
	WorkerID    string      `json:"workerId"`
	Outcome     string      `json:"outcome"`
	CompletedAt time.Time   `json:"completedAt,omitzero"`
	Output      *TaskOutput `json:"output,omitempty"`
	Error       *TaskError  `json:"error,omitempty"`
	// Metrics is an object: TaskMetrics and whatever else the worker counts.
	Metrics json.RawMessage `json:"metrics,omitempty"`
	// CancelledDuringPhase and PartialProgress (any JSON) say how far it came.
	CancelledDuringPhase string          `json:"cancelledDuringPhase,omitempty"`
	PartialProgress      json.RawMessage `json:"partialProgress,omitempty"`
}

// TaskOutput is what a task leaves. All of it is optional.
type TaskOutput struct {
	MaterializationID string `json:"materializationId,omitempty"`
	RowCount          *int64 `json:"rowCount,omitempty"`
	ByteSize          *int64 `json:"byteSize,omitempty"`
	// OutputPath is the object's key in the bucket.
	OutputPath string `json:"outputPath,omitempty"`
	// FileName is what the file is called to people; empty is the last part of
	// OutputPath.
	FileName string `json:"fileName,omitempty"`
}

// The error categories of the worker contract (WC-6).
const (
	CategoryUserCode       = "USER_CODE"
	CategoryDataQuality    = "DATA_QUALITY"
	CategoryInfrastructure = "INFRASTRUCTURE"
	CategoryConfiguration  = "CONFIGURATION"
	CategoryTimeout        = "TIMEOUT"
	CategoryCancelled      = "CANCELLED"
)

// Categories lists the error categories.
func Categories() []string {
	return []string{
		CategoryUserCode, CategoryDataQuality, CategoryInfrastructure,
		CategoryConfiguration, CategoryTimeout, CategoryCancelled,
	}
}

// RetryableByDefault says whether another attempt helps against an error of a
// category whose worker does not say (WC-6). An unknown category
// is not retryable.
func RetryableByDefault(category string) bool {
	return category == CategoryUserCode || category == CategoryInfrastructure || category == CategoryTimeout
}

// TaskError is why an attempt failed. Message is cut at 2 KiB, StackTrace at
// 16 KiB.
type TaskError struct {
	Category   string `json:"category"`
	Message    string `json:"message"`
	StackTrace string `json:"stackTrace,omitempty"`
	// Retryable overrides the category's default where it is given.
	Retryable *bool `json:"retryable,omitempty"`
}

// TaskMetrics are the figures that the contract names; an absent one is
// unknown.
type TaskMetrics struct {
	CPUTimeMS       *int64 `json:"cpuTimeMs,omitempty"`
	PeakMemoryBytes *int64 `json:"peakMemoryBytes,omitempty"`
	IOReadBytes     *int64 `json:"ioReadBytes,omitempty"`
	IOWriteBytes    *int64 `json:"ioWriteBytes,omitempty"`
}

// Acknowledged is the answer to started, and the beginning of the other two.
type Acknowledged struct {
	Acknowledged bool      `json:"acknowledged"`
	ServerTime   time.Time `json:"serverTime"`
}

// HeartbeatAnswer is the answer to a heartbeat.
type HeartbeatAnswer struct {
	Acknowledged
	ShouldCancel bool   `json:"shouldCancel"`
	CancelReason string `json:"cancelReason,omitempty"`
	TokenRenewal
}

// TokenRenewal replaces what the envelope gave, each member where it is
// present. An old token and an old address stay good until they expire.
type TokenRenewal struct {
	TaskToken      string    `json:"taskToken,omitempty"`
	TokenExpiresAt time.Time `json:"tokenExpiresAt,omitzero"`
	Output         *Upload   `json:"output,omitempty"`
	Log            *Upload   `json:"log,omitempty"`
}

// CompletedAnswer is the answer to completed. FinalState is an outcome; it may
// be another than the one that was sent.
type CompletedAnswer struct {
	Acknowledged
	FinalState string `json:"finalState"`
}
