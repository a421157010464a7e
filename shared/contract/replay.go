package contract

import "time"

// ReplayRequest is the body of POST /v1/events:replay.
type ReplayRequest struct {
	// From and To limit the range: events behind From, up to To. Each is a cursor or a
	// time; From may be "earliest", and To "latest", its default.
	From   string       `json:"from"`
	To     string       `json:"to,omitempty"`
	Filter EventFilter  `json:"filter,omitzero"`
	Target ReplayTarget `json:"target"`
	// Limit is the largest number of events; absent is 10,000, the largest one.
	Limit *int `json:"limit,omitempty"`
}

// ReplayTarget is where a replay goes: to a webhook or to the bus.
type ReplayTarget struct {
	WebhookID string `json:"webhookId,omitempty"`
	Bus       bool   `json:"bus,omitempty"`
}

// Replay is its response. Sent of Events events were sent.
type Replay struct {
	ID     string       `json:"id"`
	Target ReplayTarget `json:"target"`
	From   string       `json:"from"`
	To     string       `json:"to"`
	Events int          `json:"events"`
	Sent   int          `json:"sent"`
	// Next is the From of a replay of the rest; absent without a rest.
	Next      string    `json:"next,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
}
