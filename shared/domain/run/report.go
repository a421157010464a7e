package run

import (
	"encoding/json"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Report is a worker's report of the end of its attempt.
type Report struct {
	// Digest distinguishes a repeated report from a contradicting one.
	Digest  string  `json:"digest"`
	Success bool    `json:"success"`
	Upload  *Upload `json:"upload,omitempty"`
	// Metrics are the worker's metrics: nil or a JSON object.
	Metrics json.RawMessage `json:"metrics,omitempty"`
	// Error is the worker's description of its failure.
	Error string `json:"error,omitempty"`

	// The following fields are set only by the worker contract.

	// Outcome is the reported outcome; if empty, Success decides.
	Outcome Outcome `json:"outcome,omitempty"`
	// Output is the JSON object with which the worker describes its output.
	Output json.RawMessage `json:"output,omitempty"`
	// Category, StackTrace and Retryable describe a failure. If Retryable is
	// nil, the category decides.
	Category   fault.Category `json:"category,omitempty"`
	StackTrace string         `json:"stackTrace,omitempty"`
	Retryable  *bool          `json:"retryable,omitempty"`
	// Exit describes how the program of a job ended; nil if the worker does not report it.
	Exit *Exit `json:"exit,omitempty"`
	// Phase and Partial describe the progress of a cancelled worker.
	Phase   string          `json:"phase,omitempty"`
	Partial json.RawMessage `json:"partial,omitempty"`
}

// fault returns the fault of a reported failure. A callback of the export contract has no
// category; its error is final. A failure of the category CANCELLED is always final.
func (r Report) fault(policy spec.Retry) *fault.Fault {
	f := fault.New(fault.WorkerError, "%s", r.Error)
	if r.Category == "" {
		return f
	}
	f.Category = r.Category
	f.Retryable = r.Category.Retryable() || len(policy.Categories) > 0
	if r.Retryable != nil {
		f.Retryable = *r.Retryable
	}
	f.Retryable = f.Retryable && policy.Allows(r.Category) && r.Category != fault.CategoryCancel
	return f
}
