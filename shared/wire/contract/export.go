// Package contract declares the wire types of the contracts with clients and workers, the
// claims of the tokens, and the OpenAPI document.
//
// It imports only the standard library, so that a worker can import it. JSON names are those of
// the contracts. The package validates nothing: httpkit rejects bodies that do not match a
// type, package api rejects invalid values.
//
// README.md lists every requirement of the contracts and the test that verifies it.
package contract

import (
	"encoding/json"
	"time"
)

// ExportRequest is the body of POST /export/{format}.
type ExportRequest struct {
	PI      string         `json:"pi"`
	Options *ExportOptions `json:"options,omitempty"`
	BatchID *string        `json:"batch_id,omitempty"`
	Policy  *Policy        `json:"policy,omitempty"`
	// Webhook requests a webhook for the events of the task.
	Webhook *ExportWebhook `json:"webhook,omitempty"`
}

// ExportOptions selects what an export contains. Absent members have defaults.
type ExportOptions struct {
	Recursive         *bool   `json:"recursive,omitempty"`
	MaxDepth          *int    `json:"maxDepth,omitempty"`
	ParallelBatchSize *int    `json:"parallelBatchSize,omitempty"`
	IncludeOCR        *bool   `json:"includeOcr,omitempty"`
	CheimarrosMode    *string `json:"cheimarrosMode,omitempty"`
}

// BatchSingle is the batch_id of a task whose request has no batch_id.
const BatchSingle = "single"

// The statuses of a task in the export contract.
const (
	StatusProcessing = "processing"
	StatusSuccess    = "success"
	StatusError      = "error"
)

// CodeSkipped is the error code of a run that was skipped (EC-6.4).
const CodeSkipped = "SKIPPED"

// ExportAccepted is the response to an accepted export.
type ExportAccepted struct {
	TaskID  string `json:"task_id"`
	Status  string `json:"status"`
	Message string `json:"message"`
	// Webhook is the webhook that the request asked for.
	Webhook *ExportWebhookCreated `json:"webhook,omitempty"`
}

// Callback is the body of POST /callback/{task_id}. Output and metrics belong to "success",
// Error to "error". The struct tag report sets how strictly the server reads a field; see
// httpkit.DecodeReport.
type Callback struct {
	TaskID         string          `json:"task_id"`
	BatchID        string          `json:"batch_id,omitempty"`
	Status         string          `json:"status"`
	OutputKey      string          `json:"output_r2_key,omitempty"    report:"strict"`
	OutputFileName string          `json:"output_file_name,omitempty"`
	OutputFileSize *int64          `json:"output_file_size,omitempty"`
	Metrics        json.RawMessage `json:"metrics,omitempty"          report:"object"`
	Error          string          `json:"error,omitempty"`
}

// CallbackReceived is the response to a callback.
type CallbackReceived struct {
	Received bool `json:"received"`
}

// Status is the response of GET /status/{task_id}: the fields of the export contract and
// additional ones.
type Status struct {
	TaskID         string          `json:"task_id"`
	BatchID        string          `json:"batch_id"`
	Status         string          `json:"status"`
	PI             string          `json:"pi,omitempty"`
	Format         string          `json:"format,omitempty"`
	Options        json.RawMessage `json:"options,omitempty"`
	OutputKey      string          `json:"output_r2_key,omitempty"`
	OutputFileName string          `json:"output_file_name,omitempty"`
	OutputFileSize *int64          `json:"output_file_size,omitempty"`
	Metrics        json.RawMessage `json:"metrics,omitempty"`
	// Error is for people. ErrorCode and ErrorCategory are for programs.
	Error         string `json:"error,omitempty"`
	ErrorCode     string `json:"error_code,omitempty"`
	ErrorCategory string `json:"error_category,omitempty"`
	// Skipped reports whether the run ended without an attempt. ErrorCode is then CodeSkipped.
	Skipped bool `json:"skipped,omitempty"`

	State   string `json:"state"`
	Attempt int    `json:"attempt"`
	// QueuePosition is 0 for the next task to start. It is absent if the task is not queued.
	QueuePosition *int      `json:"queue_position,omitempty"`
	Progress      *Progress `json:"progress,omitempty"`
	// Pool is the pool of the run. It is absent before the admission of a run that names no
	// pool. FellBack are its fallbacks since it left its own pool.
	Pool     string     `json:"pool,omitempty"`
	FellBack []FellBack `json:"fellBack,omitempty"`
	// TriggeredBy, Triggered, UntakenActions and FailedActions are as in Task.
	TriggeredBy    *JobRunRef        `json:"triggeredBy,omitempty"`
	Triggered      []JobRunRef       `json:"triggered,omitempty"`
	UntakenActions []UntakenAction   `json:"untakenActions,omitempty"`
	FailedActions  []FailedAction    `json:"failedActions,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	MachineID      string            `json:"machineId,omitempty"`
	// WorkerID is the worker of the current attempt. LastHeartbeatAt is the time of its last
	// call, while the attempt runs.
	WorkerID        string    `json:"workerId,omitempty"`
	LastHeartbeatAt time.Time `json:"lastHeartbeatAt,omitzero"`
	CreatedAt       time.Time `json:"createdAt"`
	UpdatedAt       time.Time `json:"updatedAt"`
	StartedAt       time.Time `json:"startedAt,omitzero"`
	CompletedAt     time.Time `json:"completedAt,omitzero"`
	// OutputExpiresAt is the time at which the output is deleted, ExpiresAt that at which the
	// task is deleted.
	OutputExpiresAt time.Time `json:"outputExpiresAt,omitzero"`
	ExpiresAt       time.Time `json:"expiresAt,omitzero"`
}

// Progress is the progress of a task.
type Progress struct {
	// Percent is 0 to 100. It is absent if unknown.
	Percent *int   `json:"percent,omitempty"`
	Message string `json:"message,omitempty"`
}
