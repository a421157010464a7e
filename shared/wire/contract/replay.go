package contract

import "time"

// ReplayRequest is the body of POST /v1/events:replay.
type ReplayRequest struct {
	// From and To limit the range: the events after From, up to To. Each is a cursor or a time.
	// From may also be "earliest". To may also be "latest", which is its default.
	From   string       `json:"from"`
	To     string       `json:"to,omitempty"`
	Filter EventFilter  `json:"filter,omitzero"`
	Target ReplayTarget `json:"target"`
	// Limit is the maximum number of events. The default is 10,000, which is also the highest
	// value.
	Limit *int `json:"limit,omitempty"`
}

// ReplayTarget is the destination of a replay: a webhook or the bus.
type ReplayTarget struct {
	WebhookID string `json:"webhookId,omitempty"`
	Bus       bool   `json:"bus,omitempty"`
}

// Replay is the response of POST /v1/events:replay. Sent is how many of Events were sent.
type Replay struct {
	ID     string       `json:"id"`
	Target ReplayTarget `json:"target"`
	From   string       `json:"from"`
	To     string       `json:"to"`
	Events int          `json:"events"`
	Sent   int          `json:"sent"`
	// Next is the From with which another replay continues. It is absent if no events remain.
	Next      string    `json:"next,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
}
