package contract

import "time"

// RunFilter selects the runs that match all its fields. An absent field matches all runs.
type RunFilter struct {
	// RunIDs are at most 100 runs, by run id or task id.
	RunIDs []string `json:"runIds,omitempty"`
	JobID  string   `json:"jobId,omitempty"`
	Pool   string   `json:"pool,omitempty"`
	Kind   string   `json:"kind,omitempty"`
	States []string `json:"states,omitempty"`
	// Skipped selects the runs that were skipped if it is true, the other runs if it is false.
	Skipped *bool `json:"skipped,omitempty"`
	// Trigger is the cause of the run of a program.
	Trigger string `json:"trigger,omitempty"`
	// FaultCode is the fault code of the run's failure. Error is a text in its message.
	FaultCode string `json:"faultCode,omitempty"`
	Error     string `json:"error,omitempty"`
	// Label is a selector of labels, such as "team=data,env!=dev".
	Label string `json:"label,omitempty"`
	// CreatedAfter and CreatedBefore are exclusive bounds.
	CreatedAfter  time.Time `json:"createdAfter,omitzero"`
	CreatedBefore time.Time `json:"createdBefore,omitzero"`
}

// BulkRequest is the body of POST /v1/runs:retry.
type BulkRequest struct {
	Filter RunFilter `json:"filter"`
	// DryRun lists the selected runs and changes nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// Limit is the number of runs on a page, 1 to 100. Absent means 100.
	Limit *int `json:"limit,omitempty"`
	// Cursor is the nextCursor of the previous page. It is empty for the first page.
	Cursor string `json:"cursor,omitempty"`
}

// BulkCancelRequest is the body of POST /v1/runs:cancel: a BulkRequest with a reason.
type BulkCancelRequest struct {
	Filter RunFilter `json:"filter"`
	DryRun bool      `json:"dryRun,omitempty"`
	Limit  *int      `json:"limit,omitempty"`
	Cursor string    `json:"cursor,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// BulkLabelRequest is the body of PATCH /v1/runs: a BulkRequest with the change of the labels.
type BulkLabelRequest struct {
	Filter RunFilter `json:"filter"`
	DryRun bool      `json:"dryRun,omitempty"`
	Limit  *int      `json:"limit,omitempty"`
	Cursor string    `json:"cursor,omitempty"`
	LabelRequest
}

// LabelRequest is the body of PATCH /v1/runs/{run_id}.
type LabelRequest struct {
	// Labels maps keys to new values. null removes the label.
	Labels map[string]*string `json:"labels"`
}

// BulkAnswer is a page of the results of a bulk request.
type BulkAnswer struct {
	DryRun bool      `json:"dryRun"`
	Runs   []BulkRun `json:"runs"`
	// NextCursor is the cursor of the next page. It is absent on the last page.
	NextCursor string `json:"nextCursor,omitempty"`
}

// BulkRun is the result of a bulk request for one run.
type BulkRun struct {
	RunID  string `json:"runId"`
	TaskID string `json:"taskId"`
	JobID  string `json:"jobId,omitempty"`
	State  string `json:"state"`
	Result string `json:"result"`
	// Message explains a cancel or a refusal.
	Message string `json:"message,omitempty"`
	// Code is the error code of a refusal.
	Code string `json:"code,omitempty"`
	// Retry is the new run of a retry.
	Retry *RunAccepted `json:"retry,omitempty"`
}

// The results of a bulk request in addition to those of CancelAnswer.
const (
	// BulkSelected means that the request is a dry run.
	BulkSelected = "selected"
	// BulkCreated means that a new run retries the run. BulkExisting means that an earlier
	// request created that run.
	BulkCreated  = "created"
	BulkExisting = "existing"
	// BulkChanged means that the labels of the run were changed, BulkUnchanged that it has them
	// already.
	BulkChanged   = "changed"
	BulkUnchanged = "unchanged"
	// BulkRefused means that the run was not changed.
	BulkRefused = "refused"
)
