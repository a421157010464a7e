package contract

import (
	"encoding/json"
	"time"
)

// EventPage is the response of GET /v1/events.
type EventPage struct {
	// Events are envelopes with the schema orch.event.v1.
	Events []json.RawMessage `json:"events"`
	// Next is the cursor of the next page. At the end of the stream it is the cursor of this
	// page.
	Next string `json:"next"`
}

// EventFilter is the body of POST /v1/events/tickets. An absent field matches all events.
type EventFilter struct {
	Types       []string `json:"types,omitempty"`
	ProjectID   string   `json:"projectId,omitempty"`
	JobID       string   `json:"jobId,omitempty"`
	TaskID      string   `json:"taskId,omitempty"`
	BatchID     string   `json:"batchId,omitempty"`
	ParentRunID string   `json:"parentRunId,omitempty"`
	Label       string   `json:"label,omitempty"`
}

// Ticket is the response of POST /v1/events/tickets.
type Ticket struct {
	Ticket    string    `json:"ticket"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// StreamGap is the EventType of Gap.
const StreamGap = "stream.gap"

// Gap is the data of the event which reports that a stream does not continue at the reader's
// cursor.
type Gap struct {
	EventType string `json:"eventType"`
	// Asked is the cursor of the reader. Oldest and Newest are the cursors of the oldest and
	// newest event in the stream.
	Asked  string `json:"asked"`
	Oldest string `json:"oldest"`
	Newest string `json:"newest"`
}

// The types of messages on a WebSocket.
const (
	MessageEvent  = "event"
	MessageGap    = "gap"
	MessageCursor = "cursor"
	MessageEnd    = "end"
)

// StreamMessage is a message on a WebSocket.
type StreamMessage struct {
	Type string `json:"type"`
	// ID is the cursor after the message. It is empty in the message of a refused connection.
	ID    string          `json:"id,omitempty"`
	Event json.RawMessage `json:"event,omitempty"`
	Gap   *Gap            `json:"gap,omitempty"`
	// RetryMS is the number of milliseconds after which a client should connect again.
	RetryMS int64 `json:"retryMs,omitempty"`
}
