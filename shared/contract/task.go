package contract

import (
	"encoding/json"
	"time"
)

// Task is the answer of GET /v1/tasks/{task_id}: the run as Sortie names it.
type Task struct {
	TaskID  string `json:"taskId"`
	RunID   string `json:"runId"`
	BatchID string `json:"batchId,omitempty"`
	// RetryOf is the task that this one was made of.
	RetryOf       string          `json:"retryOf,omitempty"`
	CorrelationID string          `json:"correlationId"`
	Kind          string          `json:"kind"`
	Format        string          `json:"format"`
	PI            string          `json:"pi"`
	Options       json.RawMessage `json:"options"`
	Policy        Policy          `json:"policy"`
	State         string          `json:"state"`
	Attempt       int             `json:"attempt"`
	// FailedAttempts and FailedStarts are what the retry budgets have paid for.
	FailedAttempts int         `json:"failedAttempts"`
	FailedStarts   int         `json:"failedStarts"`
	QueuePosition  *int        `json:"queuePosition,omitempty"`
	Machine        *Machine    `json:"machine,omitempty"`
	Progress       *Progress   `json:"progress,omitempty"`
	Worker         *Worker     `json:"worker,omitempty"`
	Cancel         *TaskCancel `json:"cancel,omitempty"`
	Fault          *Fault      `json:"fault,omitempty"`
	Output         *Output     `json:"output,omitempty"`
	// Metrics are the worker's own.
	Metrics     json.RawMessage `json:"metrics,omitempty"`
	CreatedAt   time.Time       `json:"createdAt"`
	EnteredAt   time.Time       `json:"enteredAt"`
	ScheduledAt time.Time       `json:"scheduledAt,omitzero"`
	StartedAt   time.Time       `json:"startedAt,omitzero"`
	EndedAt     time.Time       `json:"endedAt,omitzero"`
	RetryAt     time.Time       `json:"retryAt,omitzero"`
	ExpiresAt   time.Time       `json:"expiresAt,omitzero"`
}

// Machine is where the current attempt runs.
type Machine struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	Exit *Exit  `json:"exit,omitempty"`
}

// Worker is the one of the current attempt that is heard.
type Worker struct {
	ID string `json:"id,omitempty"`
	// LastHeartbeatAt is when its last call was received, while it runs.
	LastHeartbeatAt time.Time `json:"lastHeartbeatAt,omitzero"`
	// Report is its last word, where it told it in the worker contract's terms.
	Report *WorkerReport `json:"report,omitempty"`
}

// WorkerReport is a worker's completion as it is kept.
type WorkerReport struct {
	Outcome              string          `json:"outcome"`
	Output               json.RawMessage `json:"output,omitempty"`
	Error                *TaskError      `json:"error,omitempty"`
	CancelledDuringPhase string          `json:"cancelledDuringPhase,omitempty"`
	PartialProgress      json.RawMessage `json:"partialProgress,omitempty"`
}

// Exit is how a machine's program ended.
type Exit struct {
	Code   int  `json:"code"`
	Signal int  `json:"signal,omitempty"`
	OOM    bool `json:"oom,omitempty"`
}

// CancelWish is a cancel that somebody asked for.
type TaskCancel struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
}

// Fault is a failure: its code, whose it is, and whether trying again helps.
type Fault struct {
	Code      string `json:"code"`
	Category  string `json:"category,omitempty"`
	Blame     string `json:"blame"`
	Retryable bool   `json:"retryable"`
	Message   string `json:"message"`
}

// Output is what the run left.
type Output struct {
	Key         string    `json:"key"`
	FileName    string    `json:"fileName"`
	Size        int64     `json:"size"`
	ETag        string    `json:"etag"`
	ContentType string    `json:"contentType"`
	AcceptedAt  time.Time `json:"acceptedAt"`
	ExpiresAt   time.Time `json:"expiresAt"`
	DeletedAt   time.Time `json:"deletedAt,omitzero"`
}

// CancelRequest is the body of POST /v1/tasks/{task_id}/cancel; it may be left
// out.
type CancelRequest struct {
	// Reason is told to the worker, and cut at 2 KiB.
	Reason string `json:"reason,omitempty"`
}

// What a cancel comes to. It is final: nothing overrules one that was noted.
const (
	// CancelRequested: it is noted, and the task will end by it.
	CancelRequested = "requested"
	// CancelDone: the task has ended by a cancel, this one or an earlier one.
	CancelDone = "cancelled"
	// CancelTooLate: the task had ended before, and stays as it is.
	CancelTooLate = "too_late"
)

// CancelAnswer is the answer to a cancel.
type CancelAnswer struct {
	TaskID string `json:"taskId"`
	State  string `json:"state"`
	Result string `json:"result"`
	// Message says what happens next.
	Message string `json:"message"`
}

// RetryAccepted is the answer to POST /v1/tasks/{task_id}/retry: a new task.
type RetryAccepted struct {
	TaskID  string `json:"taskId"`
	RetryOf string `json:"retryOf"`
	State   string `json:"state"`
}

// KeySet is the answer of GET /.well-known/jwks.json (RFC 7517): the keys whose
// signatures on tokens are good.
type KeySet struct {
	Keys []Key `json:"keys"`
}

// Key is the public half of a key for ES256: a point on P-256, its coordinates
// in base64url.
type Key struct {
	KeyType   string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	Y         string `json:"y"`
	KeyID     string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
}

// TaskList is a page of tasks, the newest first.
type TaskList struct {
	Tasks []Task `json:"tasks"`
	// NextCursor gives the next page; absent on the last one.
	NextCursor string `json:"nextCursor,omitempty"`
}

// TaskEvent is one thing that happened to a task. Seq counts from 1 without
// gaps.
type TaskEvent struct {
	EventID    string    `json:"eventId"`
	Seq        int       `json:"seq"`
	Type       string    `json:"type"`
	OccurredAt time.Time `json:"occurredAt"`
	From       string    `json:"from,omitempty"`
	State      string    `json:"state"`
	Attempt    int       `json:"attempt"`
	Message    string    `json:"message,omitempty"`
	Fault      *Fault    `json:"fault,omitempty"`
	Exit       *Exit     `json:"exit,omitempty"`
}

// RunEvent is a task's event as it is told to the outside, with whose it is.
type RunEvent struct {
	TenantID      string `json:"tenantId"`
	TaskID        string `json:"taskId"`
	RunID         string `json:"runId"`
	CorrelationID string `json:"correlationId"`
	TaskEvent
}

// TaskEvents is a page of a task's events, in order.
type TaskEvents struct {
	Events []TaskEvent `json:"events"`
	// NextAfter is the number to ask for the next page with; absent on the last
	// one.
	NextAfter int `json:"nextAfter,omitempty"`
}

// Health is the answer of GET /healthz.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}
