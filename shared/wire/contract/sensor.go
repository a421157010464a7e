package contract

// EventReceipts is the response of POST /v1/jobs/{job_id}/events, in the order of the events.
type EventReceipts struct {
	Events []EventReceipt `json:"events"`
}

// EventReceipt is what follows from an event.
type EventReceipt struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	// Result is EventCreated, EventExisting or EventIgnored.
	Result string `json:"result"`
	// RunID is the run of the event; empty for an ignored one.
	RunID string `json:"runId,omitempty"`
}

// The results of events: a new run, the run of an earlier request, and none, because the filters of
// the job do not take the event.
const (
	EventCreated  = "created"
	EventExisting = "existing"
	EventIgnored  = "ignored"
)

// TriggeringEvent has the attributes of the item that started a run.
type TriggeringEvent struct {
	ID      string `json:"id"`
	Source  string `json:"source"`
	Type    string `json:"type"`
	Subject string `json:"subject,omitempty"`
}
