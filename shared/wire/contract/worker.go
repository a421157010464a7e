package contract

import (
	"encoding/json"
	"time"
)

// EnvelopeVariable is the environment variable with a worker's TaskEnvelope as JSON.
const EnvelopeVariable = "TASK_ENVELOPE"

// TaskEnvelope is the input of a worker (WC-8) with the upload URLs of its output and its log.
// It contains a token and presigned URLs. Never log it.
type TaskEnvelope struct {
	TaskID string `json:"taskId"`
	RunID  string `json:"runId"`
	// AssetID is the subject of the task. For an export it is the PI.
	AssetID string `json:"assetId,omitempty"`
	// TaskKey is the kind of work. For an export it is, for example, "export/mods".
	TaskKey       string `json:"taskKey,omitempty"`
	TenantID      string `json:"tenantId"`
	WorkspaceID   string `json:"workspaceId"`
	CorrelationID string `json:"correlationId,omitempty"`
	// TraceParent is the W3C trace context of the attempt, the parent of the worker's spans.
	TraceParent string    `json:"traceparent,omitempty"`
	Attempt     int       `json:"attempt"` // from 1
	Resources   Resources `json:"resources,omitzero"`
	EnqueuedAt  time.Time `json:"enqueuedAt,omitzero"`
	// Deadline is the time at which the attempt is killed. Nothing extends it. Zero means no
	// deadline.
	Deadline time.Time `json:"deadline,omitzero"`

	// CallbackBaseURL is the prefix of /v1/tasks/{taskId}/started and the other calls. It may
	// end in a slash.
	CallbackBaseURL string    `json:"callbackBaseUrl"`
	TaskToken       string    `json:"taskToken"`
	TokenExpiresAt  time.Time `json:"tokenExpiresAt"`
	// The three durations are in milliseconds. 0 means the contract's default: 30,000, 90,000
	// and 30,000.
	HeartbeatIntervalMS int64 `json:"heartbeatIntervalMs,omitempty"`
	HeartbeatTimeoutMS  int64 `json:"heartbeatTimeoutMs,omitempty"`
	CancelGracePeriodMS int64 `json:"cancelGracePeriodMs,omitempty"`

	// Output and Log are absent if there is no bucket.
	Output *Upload `json:"output,omitempty"`
	Log    *Upload `json:"log,omitempty"`
	// ScheduledAt is the scheduled time of a run of a job, or else that of its creation. Inputs are
	// the values of the inputs that the job declares.
	ScheduledAt time.Time                  `json:"scheduledAt,omitzero"`
	Inputs      map[string]json.RawMessage `json:"inputs,omitempty"`
	// Program is present for a run of a job. sortie-exec reads it.
	Program *EnvelopeProgram `json:"program,omitempty"`
}

// TraceParentVariable is the environment variable with the envelope's trace context. Programs
// with OpenTelemetry read it.
const TraceParentVariable = "TRACEPARENT"

// The environment variables of a run of a stored job: the envelope's ScheduledAt; Inputs as a JSON
// object; the path of a file with that object, which sortie-exec writes; and the prefix of the
// variables with the single inputs. Those of inputs are absent for a run without values.
const (
	ScheduledVariable  = "SORTIE_SCHEDULED_AT"
	InputsVariable     = "SORTIE_INPUTS"
	InputsFileVariable = "SORTIE_INPUTS_FILE"
	InputPrefix        = "SORTIE_INPUT_"
)

// EventVariable is the environment variable with the CloudEvent that started the run, as JSON of at
// most 64 KiB. Other runs do not have it.
const EventVariable = "SORTIE_EVENT"

// The environment variables of a child: its item, the index of that, and the prefix of the variables
// with the single values of a matrix.
const (
	ItemVariable      = "SORTIE_ITEM"
	ItemIndexVariable = "SORTIE_ITEM_INDEX"
	MatrixPrefix      = "SORTIE_MATRIX_"
)

// UpstreamVariable is the environment variable of a run that came after runs of other jobs: a JSON
// object with an UpstreamRun for each of these jobs, by id. Other runs do not have it.
// If it may exceed 32 KiB, UpstreamURLVariable has the presigned URL of that object instead.
// sortie-exec writes both to the file UpstreamFileVariable.
const (
	UpstreamVariable     = "SORTIE_UPSTREAM"
	UpstreamURLVariable  = "SORTIE_UPSTREAM_URL"
	UpstreamFileVariable = "SORTIE_UPSTREAM_FILE"
)

// UpstreamRun is a run that another one came after.
type UpstreamRun struct {
	RunID   string `json:"runId"`
	State   string `json:"state"`
	Skipped bool   `json:"skipped,omitempty"`
	// Output is nil without an output.
	Output *UpstreamOutput `json:"output,omitempty"`
	// Result is the output if it is a document in JSON of at most 16 KiB, and if the results of the
	// jobs have at most 64 KiB together.
	Result json.RawMessage `json:"result,omitempty"`
}

// UpstreamOutput is the output of an UpstreamRun.
type UpstreamOutput struct {
	// URL is valid until the deadline of the attempt.
	URL      string `json:"url"`
	FileName string `json:"fileName"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// Digest is "sha256:" and the hexadecimal SHA-256; empty if it is not known.
	Digest string `json:"digest,omitempty"`
}

// CompletionVariable is the environment variable of a job's machine that sets how an attempt
// ends: "exit" or "callback".
const CompletionVariable = "SORTIE_COMPLETION"

// The environment variables of a run that another run triggered. They describe that run, its
// job, and its state at that time. The last four are absent if it had no output. The digest is
// also absent if it is not known.
const (
	ParentRunVariable          = "SORTIE_PARENT_RUN_ID"
	ParentJobVariable          = "SORTIE_PARENT_JOB_ID"
	ParentStateVariable        = "SORTIE_PARENT_STATE"
	ParentOutputURLVariable    = "SORTIE_PARENT_OUTPUT_URL"
	ParentOutputNameVariable   = "SORTIE_PARENT_OUTPUT_NAME"
	ParentOutputSizeVariable   = "SORTIE_PARENT_OUTPUT_SIZE"
	ParentOutputDigestVariable = "SORTIE_PARENT_OUTPUT_DIGEST"
)

// EnvelopeProgram is the part of the envelope for a wrapper that runs the program of a job.
type EnvelopeProgram struct {
	// Input is the program's standard input. It is absent if the input is empty.
	Input *Download `json:"input,omitempty"`
	// Output is the file that the program writes. It is absent if the program writes no file.
	Output *ProgramOutput `json:"output,omitempty"`
	// SuccessCodes are the exit codes that mean success.
	SuccessCodes []int `json:"successCodes"`
	// SecretVariables are the environment variables whose values are secrets.
	SecretVariables []string `json:"secretVariables,omitempty"`
}

// Download authorizes a worker to read one object.
type Download struct {
	// URL is presigned. It is a secret: it authorizes reads until ExpiresAt.
	URL       string    `json:"url"`
	Size      int64     `json:"size"` // in bytes
	ExpiresAt time.Time `json:"expiresAt"`
}

// ProgramOutput is a file that a program writes.
type ProgramOutput struct {
	// Path is relative to the program's working directory, or absolute.
	Path string `json:"path"`
	// FileName is the name of the downloaded file.
	FileName string `json:"fileName"`
	// ContentType is application/octet-stream if empty.
	ContentType string `json:"contentType,omitempty"`
}

// The contract's defaults for the durations of an envelope, in milliseconds.
const (
	DefaultHeartbeatIntervalMS = 30_000
	DefaultHeartbeatTimeoutMS  = 90_000
	DefaultCancelGracePeriodMS = 30_000
)

// Resources are the resources of the machine. 0 means unknown or unlimited.
type Resources struct {
	CPUMillicores int64 `json:"cpuMillicores,omitempty"`
	MemoryBytes   int64 `json:"memoryBytes,omitempty"`
	// TimeoutMS is the time limit of the attempt from its start.
	TimeoutMS int64 `json:"timeoutMs,omitempty"`
}

// Upload authorizes a worker to write one object with one PUT.
type Upload struct {
	// URL is presigned. It is a secret: it authorizes the write until ExpiresAt.
	URL string `json:"url"`
	// Headers are part of the signature. The PUT must send them unchanged.
	Headers map[string]string `json:"headers,omitempty"`
	// Key is the object's key in the bucket, the value for TaskOutput.OutputPath.
	Key       string    `json:"key"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// TaskStarted is the body of POST /v1/tasks/{task_id}/started.
type TaskStarted struct {
	Attempt   int       `json:"attempt"`
	WorkerID  string    `json:"workerId"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// HandlesSigterm reports whether the worker handles SIGTERM as a cancel request: it stops
	// its work and sends completed within the grace period.
	HandlesSigterm bool `json:"handlesSigterm,omitempty"`
	// SendsOutput reports whether the worker sends its output while it runs; see TaskLog.
	SendsOutput bool `json:"sendsOutput,omitempty"`
}

// TaskLog is the body of POST /v1/tasks/{task_id}/logs: a chunk of output. For the struct tag
// report see TaskCompleted.
type TaskLog struct {
	Attempt int `json:"attempt"`
	// Stream is stdout or stderr.
	Stream string `json:"stream"`
	// Sequence numbers the chunks of both streams of an attempt together, without gaps, from 0
	// or 1.
	Sequence *int `json:"sequence"`
	// Data is base64 of at most 32 KiB.
	Data *string `json:"data"`
	// AgeMs is the number of milliseconds since the oldest byte of Data was written. It is nil
	// if unknown.
	AgeMs *int64 `json:"ageMs,omitempty"`
}

// LogAnswer is the response to a chunk of output.
type LogAnswer struct {
	Acknowledged
	ShouldCancel bool `json:"shouldCancel"`
	// CancelReason is present if ShouldCancel is true.
	CancelReason string `json:"cancelReason,omitempty"`
	// Followed reports whether a client follows the output. The worker then sends it sooner.
	Followed bool `json:"followed"`
}

// LogLine is a line of a followed log in application/x-ndjson.
type LogLine struct {
	Attempt int `json:"attempt,omitempty"`
	// Stream is the stream of Data or Cut: stdout or stderr.
	Stream string `json:"stream,omitempty"`
	// Data is output. It is base64 in JSON.
	Data []byte `json:"data,omitempty"`
	// Cut is the number of bytes that are missing at this point.
	Cut int64 `json:"cut,omitempty"`
	// At is the time at which the first byte of Data was written; zero if unknown.
	At time.Time `json:"at,omitzero"`
	// Next is the offset in the attempt's log after this line.
	Next int64 `json:"next"`
	// Ended reports that the run has ended and that this is the last line. A client that does
	// not get it connects again with the last Attempt and Next.
	Ended bool `json:"ended,omitempty"`
}

// TaskHeartbeat is the body of POST /v1/tasks/{task_id}/heartbeat.
type TaskHeartbeat struct {
	Attempt  int    `json:"attempt"`
	WorkerID string `json:"workerId"`
	// HeartbeatAt is the time by the worker's clock. Zero means unknown.
	HeartbeatAt time.Time `json:"heartbeatAt,omitzero"`
	// ProgressPct is 0 to 100. If absent, the last value does not change.
	ProgressPct *int `json:"progressPct,omitempty"`
	// Message is truncated to 2 KiB. If empty, the last value does not change.
	Message string `json:"message,omitempty"`
}

// The outcomes of an attempt. They are also its final states.
const (
	OutcomeSucceeded = "SUCCEEDED"
	OutcomeFailed    = "FAILED"
	OutcomeCancelled = "CANCELLED"
)

// TaskCompleted is the body of POST /v1/tasks/{task_id}/completed. Output belongs to SUCCEEDED,
// Error to FAILED, the last two members to CANCELLED. The struct tag report sets how strictly
// the server reads a field; see httpkit.DecodeReport.
type TaskCompleted struct {
	Attempt     int         `json:"attempt"`
	WorkerID    string      `json:"workerId"`
	Outcome     string      `json:"outcome"`
	CompletedAt time.Time   `json:"completedAt,omitzero"`
	Output      *TaskOutput `json:"output,omitempty"`
	Error       *TaskError  `json:"error,omitempty"`
	// Exit is the exit status of the program of a job.
	Exit *Exit `json:"exit,omitempty"`
	// Metrics is an object with TaskMetrics and metrics that the worker defines.
	Metrics json.RawMessage `json:"metrics,omitempty" report:"object"`
	// CancelledDuringPhase and PartialProgress (any JSON) describe how much work was done.
	CancelledDuringPhase string          `json:"cancelledDuringPhase,omitempty"`
	PartialProgress      json.RawMessage `json:"partialProgress,omitempty"`
}

// TaskOutput describes the output of a task. All members are optional.
type TaskOutput struct {
	MaterializationID string `json:"materializationId,omitempty"`
	RowCount          *int64 `json:"rowCount,omitempty"`
	ByteSize          *int64 `json:"byteSize,omitempty"`
	// OutputPath is the object's key in the bucket.
	OutputPath string `json:"outputPath,omitempty" report:"strict"`
	// FileName is the name of the downloaded file. If empty, it is the last part of OutputPath.
	FileName string `json:"fileName,omitempty"`
	// Digest is "sha256:" and the 64 hexadecimal digits of the object's SHA-256. It is empty if
	// the worker did not compute it.
	Digest string `json:"digest,omitempty" report:"strict"`
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

// RetryableByDefault reports whether an error of the category is retried if the
// worker does not set Retryable (WC-6). Unknown categories are not retryable.
func RetryableByDefault(category string) bool {
	return category == CategoryUserCode || category == CategoryInfrastructure || category == CategoryTimeout
}

// TaskError is the reason for a failed attempt. Message is truncated to 2 KiB, StackTrace to 16
// KiB.
type TaskError struct {
	Category   string `json:"category"`
	Message    string `json:"message"`
	StackTrace string `json:"stackTrace,omitempty"`
	// Retryable overrides the default of the category.
	Retryable *bool `json:"retryable,omitempty"`
}

// TaskMetrics are the metrics that the contract defines. An absent metric is unknown.
type TaskMetrics struct {
	CPUTimeMS       *int64 `json:"cpuTimeMs,omitempty"`
	PeakMemoryBytes *int64 `json:"peakMemoryBytes,omitempty"`
	IOReadBytes     *int64 `json:"ioReadBytes,omitempty"`
	IOWriteBytes    *int64 `json:"ioWriteBytes,omitempty"`
}

// Acknowledged is the response to started. The other responses embed it.
type Acknowledged struct {
	Acknowledged bool      `json:"acknowledged"`
	ServerTime   time.Time `json:"serverTime"`
}

// HeartbeatAnswer is the response to a heartbeat.
type HeartbeatAnswer struct {
	Acknowledged
	ShouldCancel bool `json:"shouldCancel"`
	// CancelReason is present if ShouldCancel is true.
	CancelReason string `json:"cancelReason,omitempty"`
	TokenRenewal
}

// CancelReasonUser is the cancelReason of a cancel request without a reason.
const CancelReasonUser = "user_requested"

// TokenRenewal replaces the corresponding members of the envelope if they are present. The
// previous token and URLs are valid until they expire.
type TokenRenewal struct {
	TaskToken      string    `json:"taskToken,omitempty"`
	TokenExpiresAt time.Time `json:"tokenExpiresAt,omitzero"`
	Output         *Upload   `json:"output,omitempty"`
	Log            *Upload   `json:"log,omitempty"`
}

// CompletedAnswer is the response to completed. FinalState may differ from the outcome in the
// request.
type CompletedAnswer struct {
	Acknowledged
	FinalState string `json:"finalState"`
}
