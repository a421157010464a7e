// Package contract has the shapes that clients and workers see: the wire types
// of the contracts, the claims of the tokens, and the OpenAPI document.
//
// It needs the standard library alone, so that a worker can import it. Names
// in JSON are the contracts' own. The package checks nothing; httpkit refuses
// what does not fit a shape, the orchestrator what does not make sense.
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
	BatchID string         `json:"batch_id,omitempty"`
	Policy  *Policy        `json:"policy,omitempty"`
}

// ExportOptions say what an export contains. An absent member has the default
// of the worker: see WithDefaults.
type ExportOptions struct {
	Recursive         *bool   `json:"recursive,omitempty"`
	MaxDepth          *int    `json:"maxDepth,omitempty"`
	ParallelBatchSize *int    `json:"parallelBatchSize,omitempty"`
	IncludeOCR        *bool   `json:"includeOcr,omitempty"`
	CheimarrosMode    *string `json:"cheimarrosMode,omitempty"`
}

// WithDefaults fills what is absent: not recursive, depth 5, 10 in flight, OCR
// included, the whole graph.
func (o ExportOptions) WithDefaults() ExportOptions {
	return ExportOptions{
		Recursive: orDefault(o.Recursive, false), MaxDepth: orDefault(o.MaxDepth, 5),
		ParallelBatchSize: orDefault(o.ParallelBatchSize, 10), IncludeOCR: orDefault(o.IncludeOCR, true),
		CheimarrosMode: orDefault(o.CheimarrosMode, "full"),
	}
}

func orDefault[T any](given *T, fallback T) *T {
	if given != nil {
		return given
	}
	return &fallback
}

// The three statuses of the export contract.
const (
	StatusProcessing = "processing"
	StatusSuccess    = "success"
	StatusError      = "error"
)

// ExportAccepted is the answer to an accepted export.
type ExportAccepted struct {
	TaskID  string `json:"task_id"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

// Callback is the body of POST /callback/{task_id}. Output and metrics belong
// to "success", Error to "error".
type Callback struct {
	TaskID         string          `json:"task_id"`
	BatchID        string          `json:"batch_id,omitempty"`
	Status         string          `json:"status"`
	OutputKey      string          `json:"output_r2_key,omitempty"`
	OutputFileName string          `json:"output_file_name,omitempty"`
	OutputFileSize *int64          `json:"output_file_size,omitempty"`
	Metrics        json.RawMessage `json:"metrics,omitempty"`
	Error          string          `json:"error,omitempty"`
}

// CallbackReceived is the answer to a callback.
type CallbackReceived struct {
	Received bool `json:"received"`
}

// Status is the answer of GET /status/{task_id}: the export contract's fields,
// and beside them what Sortie knows.
type Status struct {
	TaskID         string          `json:"task_id"`
	BatchID        string          `json:"batch_id,omitempty"`
	Status         string          `json:"status"`
	PI             string          `json:"pi"`
	Format         string          `json:"format"`
	Options        json.RawMessage `json:"options"`
	OutputKey      string          `json:"output_r2_key,omitempty"`
	OutputFileName string          `json:"output_file_name,omitempty"`
	OutputFileSize *int64          `json:"output_file_size,omitempty"`
	Metrics        json.RawMessage `json:"metrics,omitempty"`
	// Error is the reason in words, ErrorCode and ErrorCategory for programs.
	Error         string `json:"error,omitempty"`
	ErrorCode     string `json:"error_code,omitempty"`
	ErrorCategory string `json:"error_category,omitempty"`

	State   string `json:"state"`
	Attempt int    `json:"attempt"`
	// QueuePosition is 0 for the first in line; absent where the task is in no
	// line.
	QueuePosition *int      `json:"queue_position,omitempty"`
	Progress      *Progress `json:"progress,omitempty"`
	MachineID     string    `json:"machineId,omitempty"`
	// WorkerID is the worker of the attempt that is heard, LastHeartbeatAt when
	// its last call was received, while it runs.
	WorkerID        string    `json:"workerId,omitempty"`
	LastHeartbeatAt time.Time `json:"lastHeartbeatAt,omitzero"`
	CreatedAt       time.Time `json:"createdAt"`
	UpdatedAt       time.Time `json:"updatedAt"`
	StartedAt       time.Time `json:"startedAt,omitzero"`
	CompletedAt     time.Time `json:"completedAt,omitzero"`
	// OutputExpiresAt is when the output is no longer served, ExpiresAt when
	// the task is forgotten.
	OutputExpiresAt time.Time `json:"outputExpiresAt,omitzero"`
	ExpiresAt       time.Time `json:"expiresAt,omitzero"`
}

// Progress is how far a task is.
type Progress struct {
	// Percent is 0 to 100, where it can be told.
	Percent *int   `json:"percent,omitempty"`
	Message string `json:"message,omitempty"`
}
