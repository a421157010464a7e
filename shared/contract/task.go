package contract

import (
	"encoding/json"
	"time"
)

// Task is the answer of GET /v1/tasks/{task_id}: the run as Sortie names it.
type Task struct {
	TaskID        string          `json:"taskId"`
	RunID         string          `json:"runId"`
	BatchID       string          `json:"batchId,omitempty"`
	CorrelationID string          `json:"correlationId"`
	Kind          string          `json:"kind"`
	Format        string          `json:"format"`
	PI            string          `json:"pi"`
	Options       json.RawMessage `json:"options"`
	State         string          `json:"state"`
	Attempt       int             `json:"attempt"`
	// FailedAttempts and FailedStarts are what the retry budgets have paid for.
	FailedAttempts int         `json:"failedAttempts"`
	FailedStarts   int         `json:"failedStarts"`
	QueuePosition  *int        `json:"queuePosition,omitempty"`
	Machine        *Machine    `json:"machine,omitempty"`
	Progress       *Progress   `json:"progress,omitempty"`
	Cancel         *CancelWish `json:"cancel,omitempty"`
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

// Exit is how a machine's program ended.
type Exit struct {
	Code   int  `json:"code"`
	Signal int  `json:"signal,omitempty"`
	OOM    bool `json:"oom,omitempty"`
}

// CancelWish is a cancel that somebody asked for.
type CancelWish struct {
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
	KeptAt      time.Time `json:"keptAt"`
	ExpiresAt   time.Time `json:"expiresAt"`
	DeletedAt   time.Time `json:"deletedAt,omitzero"`
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
