package api

import (
	"bytes"
	"encoding/json"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// WebhookSettings converts the settings in a request.
func WebhookSettings(in contract.WebhookSettings) delivery.WebhookSettings {
	return delivery.WebhookSettings{
		URL:         in.URL,
		Filter:      events.Filter{Types: in.EventTypes, ProjectID: in.ProjectID, JobID: in.JobID, TaskID: in.TaskID, BatchID: in.BatchID, ParentRunID: in.ParentRunID, Label: label.QueryOf(in.Label)},
		Description: in.Description, Paused: in.Paused, Ordered: in.Ordered, RateLimit: in.RateLimit,
	}
}

func webhookSettings(in delivery.WebhookSettings) contract.WebhookSettings {
	f := in.Filter
	return contract.WebhookSettings{
		URL: in.URL, EventTypes: f.Types, ProjectID: f.ProjectID, JobID: f.JobID, TaskID: f.TaskID, BatchID: f.BatchID, ParentRunID: f.ParentRunID, Label: f.Label.String(),
		Description: in.Description, Paused: in.Paused, Ordered: in.Ordered, RateLimit: in.RateLimit,
	}
}

// PatchWebhook applies a JSON merge patch (RFC 7396) to settings. decode decodes a document
// like a request body. enable reports whether the patch contains the field paused.
func PatchWebhook(
	stored delivery.WebhookSettings, patch []byte, decode func(document []byte, into any) error,
) (in delivery.WebhookSettings, enable bool, err error) {
	var changes map[string]json.RawMessage
	if err := decode(patch, &changes); err != nil {
		return in, false, err
	}
	before, err := json.Marshal(webhookSettings(stored))
	if err != nil {
		return in, false, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(before, &fields); err != nil {
		return in, false, err
	}
	for name, value := range changes {
		if fields[name] = value; bytes.Equal(bytes.TrimSpace(value), []byte("null")) {
			delete(fields, name)
		}
	}
	document, err := json.Marshal(fields)
	if err != nil {
		return in, false, err
	}
	var after contract.WebhookSettings
	if err := decode(document, &after); err != nil {
		return in, false, err
	}
	_, enable = changes["paused"]
	return WebhookSettings(after), enable, nil
}

// Webhook returns the response for a webhook without its progress.
func Webhook(w webhook.Webhook) contract.Webhook {
	found := contract.Webhook{
		ID: w.ID, WebhookSettings: webhookSettings(delivery.SettingsOf(w)), OfTask: w.TaskID != "", Secrets: []contract.WebhookSecretExpiry{},
		Version: w.Version, CreatedAt: w.CreatedAt, CreatedBy: w.CreatedBy, UpdatedAt: w.UpdatedAt, UpdatedBy: w.UpdatedBy,
	}
	for _, s := range w.Secrets {
		found.Secrets = append(found.Secrets, contract.WebhookSecretExpiry{CreatedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt})
	}
	if w.Disabled != nil {
		found.DisabledAt, found.DisabledReason = w.Disabled.At, string(w.Disabled.Reason)
	}
	return found
}

// WebhookDocument encodes a webhook for the digests in its events.
func WebhookDocument(w webhook.Webhook) ([]byte, error) { return json.Marshal(Webhook(w)) }

// WebhookDetail returns the response for a webhook. secret is shown in this response only; it
// may be empty.
func WebhookDetail(v delivery.WebhookView, secret string) contract.WebhookDetail {
	p := v.Progress
	found := contract.WebhookDetail{Webhook: Webhook(v.Webhook), Status: contract.WebhookActive, Secret: secret, Progress: contract.WebhookProgress{
		Position: p.Cursor, Pending: p.Pending, Failures: p.Health.Failures, HeldUntil: p.Health.HeldUntil,
		LastSuccessAt: p.Health.LastSuccess, LastFailureAt: p.Health.LastFailure,
		Missed: []contract.PositionRange{}, Redeliveries: []contract.Redelivery{},
	}}
	switch {
	case v.Disabled != nil:
		found.Status = contract.WebhookDisabled
	case v.Paused:
		found.Status = contract.WebhookPaused
	case p.Health.Failing():
		found.Status = contract.WebhookFailing
	}
	for _, r := range p.Missed {
		found.Progress.Missed = append(found.Progress.Missed, contract.PositionRange(r))
	}
	for _, r := range p.Replays {
		found.Progress.Redeliveries = append(found.Progress.Redeliveries, Redelivery(r))
	}
	return found
}

// Redelivery returns the response for a redelivery.
func Redelivery(r webhook.Replay) contract.Redelivery {
	return contract.Redelivery{PositionRange: contract.PositionRange(r.Range), Events: r.Total, Sent: r.Sent}
}

// RedeliveryRange returns the range of a request without failedSince. The fault is
// InvalidRequest with the field.
func RedeliveryRange(in contract.RedeliverRequest) (webhook.Range, error) {
	switch {
	case in.Position != nil && in.From == nil && in.To == nil:
		return webhook.Range{From: *in.Position, To: *in.Position}, nil
	case in.Position != nil:
		return webhook.Range{}, fault.Invalid("position", "got a position and a range, want one of them")
	case in.From == nil:
		return webhook.Range{}, fault.Invalid("from", "missing from, want the first position, or position for one event")
	case in.To == nil:
		return webhook.Range{}, fault.Invalid("to", "missing to, want the last position")
	}
	return webhook.Range{From: *in.From, To: *in.To}, nil
}

// WebhookAttempt returns the wire form of an attempt.
func WebhookAttempt(a webhook.Attempt) contract.WebhookAttempt { return contract.WebhookAttempt(a) }

// WebhookDelivery returns the wire form of a delivery.
func WebhookDelivery(d webhook.Delivery) contract.WebhookDelivery {
	found := contract.WebhookDelivery{
		Position: d.Position, EventID: d.EventID, EventType: d.EventType, TaskID: d.TaskID, State: string(d.State), Tries: d.Tries,
		NextAttemptAt: d.Due, Attempts: make([]contract.WebhookAttempt, len(d.Log)),
	}
	for i, a := range d.Log {
		found.Attempts[i] = WebhookAttempt(a)
	}
	return found
}

// ExportWebhook returns the settings of an export's webhook; nil without one.
func ExportWebhook(in *contract.ExportWebhook) *delivery.WebhookSettings {
	if in == nil {
		return nil
	}
	return &delivery.WebhookSettings{URL: in.URL, Filter: events.Filter{Types: in.EventTypes}}
}
