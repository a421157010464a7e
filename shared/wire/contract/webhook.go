package contract

import "time"

// WebhookSettings are the settings of a webhook that a client can set. They are the body of
// POST /v1/webhooks.
type WebhookSettings struct {
	URL string `json:"url"`
	// EventTypes are patterns of event types, in which "*" matches any characters. If empty,
	// the webhook gets events of all types.
	EventTypes  []string `json:"eventTypes,omitempty"`
	ProjectID   string   `json:"projectId,omitempty"`
	JobID       string   `json:"jobId,omitempty"`
	TaskID      string   `json:"taskId,omitempty"`
	BatchID     string   `json:"batchId,omitempty"`
	ParentRunID string   `json:"parentRunId,omitempty"`
	Label       string   `json:"label,omitempty"`
	Description string   `json:"description,omitempty"`
	Paused      bool     `json:"paused"`
	Ordered     bool     `json:"ordered"`
	// RateLimit is the maximum number of attempts per second; 0 is no limit.
	RateLimit int `json:"rateLimit"`
}

// The statuses of a webhook.
const (
	WebhookActive   = "active"
	WebhookPaused   = "paused"
	WebhookFailing  = "failing"
	WebhookDisabled = "disabled"
)

// Webhook is a subscription to events.
type Webhook struct {
	ID string `json:"id"`
	WebhookSettings
	// OfTask reports whether the webhook is deleted together with the record of its task.
	OfTask bool `json:"ofTask,omitempty"`
	// DisabledAt and DisabledReason are set if Sortie disabled the webhook.
	DisabledAt     time.Time             `json:"disabledAt,omitzero"`
	DisabledReason string                `json:"disabledReason,omitempty"`
	Secrets        []WebhookSecretExpiry `json:"secrets"`
	Version        int64                 `json:"version"`
	CreatedAt      time.Time             `json:"createdAt"`
	CreatedBy      string                `json:"createdBy,omitempty"`
	UpdatedAt      time.Time             `json:"updatedAt"`
	UpdatedBy      string                `json:"updatedBy,omitempty"`
}

// WebhookSecretExpiry describes a signing secret without its value.
type WebhookSecretExpiry struct {
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// WebhookDetail is a webhook with the progress of its deliveries.
type WebhookDetail struct {
	Webhook
	Status   string          `json:"status"`
	Progress WebhookProgress `json:"progress"`
	// Secret is present only once: in the response that creates the webhook or rotates its
	// secret.
	Secret string `json:"secret,omitempty"`
}

// WebhookProgress is the progress of a webhook's deliveries.
type WebhookProgress struct {
	// Position is the position up to which events were read from the stream.
	Position      int64     `json:"position"`
	Pending       int       `json:"pending"`
	Failures      int       `json:"failures"`
	HeldUntil     time.Time `json:"heldUntil,omitzero"`
	LastSuccessAt time.Time `json:"lastSuccessAt,omitzero"`
	LastFailureAt time.Time `json:"lastFailureAt,omitzero"`
	// Missed are the newest ranges of positions that were not delivered because the webhook was
	// paused or disabled.
	Missed       []PositionRange `json:"missed"`
	Redeliveries []Redelivery    `json:"redeliveries"`
}

// PositionRange is a range of positions, including both ends.
type PositionRange struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// RotateWebhookRequest is the body of POST /v1/webhooks/{id}/rotate.
type RotateWebhookRequest struct {
	// RevokeOlder revokes the older secrets: they stop signing.
	RevokeOlder bool `json:"revokeOlder,omitempty"`
}

// RedeliverRequest is the body of POST /v1/webhooks/{id}/redeliver. It selects one position, a
// range, or the events that failed since a time.
type RedeliverRequest struct {
	Position *int64 `json:"position,omitempty"`
	From     *int64 `json:"from,omitempty"`
	To       *int64 `json:"to,omitempty"`
	// FailedSince is the time of the oldest event to deliver.
	FailedSince *time.Time `json:"failedSince,omitempty"`
}

// Redelivery is a range that is delivered again. Sent is how many of Events were enqueued.
type Redelivery struct {
	PositionRange
	Events int `json:"events"`
	Sent   int `json:"sent"`
}

// WebhookList is a page of webhooks.
type WebhookList struct {
	Webhooks   []Webhook `json:"webhooks"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// WebhookAttempt is one attempt of a delivery.
type WebhookAttempt struct {
	At time.Time `json:"at"`
	// Status is the HTTP status. It is absent if there was no response. Error then says why.
	Status    int    `json:"status,omitempty"`
	LatencyMS int64  `json:"latencyMs"`
	Error     string `json:"error,omitempty"`
	// Response is the beginning of the response body, at most 4 KiB.
	Response string `json:"response,omitempty"`
}

// WebhookDelivery is the delivery of one event to one webhook.
type WebhookDelivery struct {
	Position  int64  `json:"position"`
	EventID   string `json:"eventId"`
	EventType string `json:"eventType"`
	TaskID    string `json:"taskId,omitempty"`
	State     string `json:"state"`
	// Tries counts the attempts since the event was published or redelivered.
	Tries         int              `json:"tries"`
	NextAttemptAt time.Time        `json:"nextAttemptAt,omitzero"`
	Attempts      []WebhookAttempt `json:"attempts"`
}

// WebhookDeliveries is a page of a webhook's delivery log, newest events first.
type WebhookDeliveries struct {
	Deliveries []WebhookDelivery `json:"deliveries"`
	NextCursor string            `json:"nextCursor,omitempty"`
}

// ExportWebhook requests a webhook for the events of an export.
type ExportWebhook struct {
	URL        string   `json:"url"`
	EventTypes []string `json:"eventTypes,omitempty"`
}

// ExportWebhookCreated is the webhook of an export. Secret is present only once, in the
// response that creates the webhook.
type ExportWebhookCreated struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
}
