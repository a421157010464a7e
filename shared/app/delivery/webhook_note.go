package delivery

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// newULID returns a ULID of now.
func (s *Subscriptions) newULID() string {
	var id ulid.ULID
	_ = id.SetTime(uint64(s.now().UnixMilli()))                //nolint:gosec // until the year 10889
	_, _ = hex.Decode(id[6:], []byte(s.random.Hex(len(id)-6))) // Hex returns hexadecimal digits
	return id.String()
}

// note returns the event of a change of a webhook. before is nil for a new webhook, after for a
// deleted one.
func (s *Subscriptions) note(ctx context.Context, before, after *webhook.Webhook, by run.Actor, why webhook.Reason) (note port.Note, err error) {
	of := after
	if after == nil {
		of = before
	}
	c := change.Resource{
		Tenant: of.Tenant, Kind: "webhook", ID: of.ID, Version: of.Version + 1, Revision: of.Version + 1, Created: of.CreatedAt, Reason: string(why),
	}
	if before != nil {
		c.Before, err = s.document(*before)
	}
	if err == nil && after != nil {
		stored := *after
		stored.Version++
		c.After, err = s.document(stored)
	}
	if err != nil {
		return port.Note{}, fmt.Errorf("cannot encode the webhook: %w", err)
	}
	return c.Note(ctx, by, s.now())
}

// save stores a changed webhook, and its progress unless that is nil, with the event of
// the change.
func (s *Subscriptions) save(
	ctx context.Context, before *webhook.Webhook, after webhook.Webhook, p *webhook.Progress, by run.Actor, why webhook.Reason,
) error {
	note, err := s.note(ctx, before, &after, by, why)
	if err != nil {
		return err
	}
	defer s.known.forget(after.Tenant)
	return s.store.SaveWebhook(ctx, after, p, note)
}

// deleted deletes a webhook and stores the event of the deletion.
func (s *Subscriptions) deleted(ctx context.Context, w webhook.Webhook, by run.Actor) error {
	note, err := s.note(ctx, &w, nil, by, "")
	if err != nil {
		return err
	}
	defer s.known.forget(w.Tenant)
	return s.store.DeleteWebhook(ctx, w, note)
}
