package orchestrator

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
	"github.com/sortie-dev/sortie/shared/webhook"
)

// newULID returns a ULID of now.
func (s *Subscriptions) newULID() string {
	var id ulid.ULID
	_ = id.SetTime(uint64(s.now().UnixMilli()))                //nolint:gosec // until the year 10889
	_, _ = hex.Decode(id[6:], []byte(s.random.Hex(len(id)-6))) // Hex returns hexadecimal digits
	return id.String()
}

// digest returns the digest of a webhook as clients see it; empty for nil.
func (s *Subscriptions) digest(w *webhook.Webhook) (string, error) {
	if w == nil {
		return "", nil
	}
	document, err := s.document(*w)
	if err != nil {
		return "", fmt.Errorf("cannot encode the webhook: %w", err)
	}
	return events.Digest(document)
}

// envelope returns an event about a webhook. by is who has caused it.
func (s *Subscriptions) envelope(w webhook.Webhook, by run.Actor, why webhook.Reason) events.Envelope {
	return events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(s.newULID()), EventType: eventtype.PolicyUpdated, OccurredAt: s.now(),
		IdempotencyKey: events.ResourceKey(eventtype.PolicyUpdated, "webhook/"+w.ID, w.Version), TenantID: w.Tenant, Actor: events.Actor{Subject: by.Name(), Scopes: by.Scopes},
		Policy: &events.Policy{Resource: "webhook", ID: w.ID, Version: w.Version, Reason: string(why)},
	}
}

// note returns the event of a change from before to after; nil is before the webhook was
// created, or after it was deleted.
func (s *Subscriptions) note(before, after *webhook.Webhook, by run.Actor, why webhook.Reason) (port.Note, error) {
	of := after
	if of == nil {
		of = before
	}
	changed := *of
	changed.Version++ // as it is stored
	e := s.envelope(changed, by, why)
	var err error
	if e.Policy.Before, err = s.digest(before); err != nil {
		return port.Note{}, err
	}
	if after != nil {
		if e.Policy.After, err = s.digest(&changed); err != nil {
			return port.Note{}, err
		}
	}
	document, err := json.Marshal(e)
	if err != nil {
		return port.Note{}, fmt.Errorf("cannot encode the event of a webhook: %w", err)
	}
	id, err := events.ULID(e.EventID)
	return port.Note{Tenant: of.Tenant, ID: id, At: e.OccurredAt, Document: document}, err
}

// save stores a changed webhook, and its progress unless that is nil, with the event of
// the change.
func (s *Subscriptions) save(
	ctx context.Context, before *webhook.Webhook, after webhook.Webhook, p *webhook.Progress, by run.Actor, why webhook.Reason,
) error {
	note, err := s.note(before, &after, by, why)
	if err != nil {
		return err
	}
	defer s.known.forget(after.Tenant)
	return s.store.SaveWebhook(ctx, after, p, note)
}

// deleted removes a webhook with the event of that.
func (s *Subscriptions) deleted(ctx context.Context, w webhook.Webhook, by run.Actor) error {
	note, err := s.note(&w, nil, by, "")
	if err != nil {
		return err
	}
	defer s.known.forget(w.Tenant)
	return s.store.DeleteWebhook(ctx, w, note)
}
