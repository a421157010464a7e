package contract

import "time"

// TaskEvent is an event of a task. Seq counts from 1 without gaps.
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
	// Triggered is the run that the executed action created.
	Triggered *JobRunRef `json:"triggered,omitempty"`
	// Measured is present only in the event that ends the run.
	Measured *Measured `json:"measured,omitempty"`
}

// RunEvent is a task's event as published, with the ids of its owner.
type RunEvent struct {
	TenantID      string `json:"tenantId"`
	TaskID        string `json:"taskId"`
	RunID         string `json:"runId"`
	CorrelationID string `json:"correlationId"`
	TaskEvent
}

// TaskEvents is a page of a task's events, oldest first.
type TaskEvents struct {
	Events []TaskEvent `json:"events"`
	// NextAfter is the parameter after of the next page. It is absent on the last page.
	NextAfter int `json:"nextAfter,omitempty"`
}
