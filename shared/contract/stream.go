package contract

import (
	"encoding/json"
	"time"
)

// EventPage is the response of GET /v1/events.
type EventPage struct {
	// Events are envelopes, schema orch.event.v1.
	Events []json.RawMessage `json:"events"`
	// Next is the cursor of the next page; that of this page at the end of the stream.
	Next string `json:"next"`
}

// EventFilter is the body of POST /v1/events/tickets. An absent field selects all.
type EventFilter struct {
	Types     []string `json:"types,omitempty"`
	ProjectID string   `json:"projectId,omitempty"`
	JobID     string   `json:"jobId,omitempty"`
	TaskID    string   `json:"taskId,omitempty"`
	BatchID   string   `json:"batchId,omitempty"`
}

// Ticket is its response.
type Ticket struct {
	Ticket    string    `json:"ticket"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// StreamGap is the EventType of Gap.
const StreamGap = "stream.gap"

// Gap is the data of the event that reports that a stream does not continue at the
// cursor of the reader.
type Gap struct {
	EventType string `json:"eventType"`
	// Asked is the cursor of the reader. Oldest and Newest are those of the events that
	// the stream has.
	Asked  string `json:"asked"`
	Oldest string `json:"oldest"`
	Newest string `json:"newest"`
}

// The types of messages of a WebSocket.
const (
	MessageEvent  = "event"
	MessageGap    = "gap"
	MessageCursor = "cursor"
	MessageEnd    = "end"
)

// StreamMessage is a message of a WebSocket.
type StreamMessage struct {
	Type string `json:"type"`
	// ID is the cursor behind the message. The message of a refused connection has none.
	ID    string          `json:"id,omitempty"`
	Event json.RawMessage `json:"event,omitempty"`
	Gap   *Gap            `json:"gap,omitempty"`
	// RetryMS is after how many milliseconds a client connects again.
	RetryMS int64 `json:"retryMs,omitempty"`
}
