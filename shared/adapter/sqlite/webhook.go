package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ port.WebhookStore = (*Store)(nil)

// SaveWebhook implements port.WebhookStore.
func (s *Store) SaveWebhook(ctx context.Context, w webhook.Webhook, p *webhook.Progress, notes ...port.Note) error {
	before := w.Version
	w.Version++
	doc, err := encode(&w)
	if err != nil {
		return fmt.Errorf("cannot encode webhook %s: %w", w.ID, err)
	}
	secrets, err := encode(&w.Secrets)
	if err != nil {
		return fmt.Errorf("cannot encode the secrets of webhook %s: %w", w.ID, err)
	}
	return wrap(s.write(ctx, notes, func(tx *Tx) error {
		if before == 0 {
			// The progress has version 0 until it is written below.
			if err := orConflict(tx.Exec(`INSERT INTO webhooks (tenant, id, version, doc, secrets, progress_version, progress, wake_at)
				VALUES (?, ?, ?, ?, ?, 0, x'7b7d', ?) ON CONFLICT DO NOTHING`,
				w.Tenant, w.ID, w.Version, doc, secrets, int64(math.MaxInt64))); err != nil {
				return err
			}
		} else if err := orConflict(tx.Exec("UPDATE webhooks SET version = ?, doc = ?, secrets = ? WHERE tenant = ? AND id = ? AND version = ?",
			w.Version, doc, secrets, w.Tenant, w.ID, before)); err != nil {
			return err
		}
		if p == nil {
			return nil
		}
		_, err := saveProgress(tx, *p)
		return err
	}), "store webhook", w.ID)
}

// saveProgress stores a progress if its version is the stored one, and returns the row of its
// webhook.
func saveProgress(tx *Tx, p webhook.Progress) (n int64, err error) {
	before := p.Version
	p.Version++
	doc, err := encode(&p)
	if err != nil {
		return 0, fmt.Errorf("cannot encode the progress of webhook %s: %w", p.ID, err)
	}
	err = tx.QueryRow(`UPDATE webhooks SET progress_version = ?, progress = ?, wake_at = ?
		WHERE tenant = ? AND id = ? AND progress_version = ? RETURNING n`,
		p.Version, doc, nanos(p.WakeAt), p.Tenant, p.ID, before).Scan(&n)
	if errors.Is(err, ErrNoRow) {
		err = port.ErrConflict
	}
	return n, err
}

// LoadWebhook implements port.WebhookStore.
func (s *Store) LoadWebhook(ctx context.Context, ref webhook.Ref) (w webhook.Webhook, err error) {
	found, err := s.webhooks(ctx, "WHERE tenant = ? AND id = ?", ref.Tenant, ref.ID)
	if err == nil && len(found) == 0 {
		err = port.ErrNotFound
	}
	if err != nil {
		return w, wrap(err, "read webhook", ref.ID)
	}
	return found[0], nil
}

// webhooks returns the webhooks that match the condition where.
func (s *Store) webhooks(ctx context.Context, where string, args ...any) (found []webhook.Webhook, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		found = nil
		rows := tx.Query("SELECT doc, secrets FROM webhooks "+where, args...)
		for rows.Next() {
			var doc, secrets []byte
			var w webhook.Webhook
			if err := rows.Scan(&doc, &secrets); err != nil {
				return err
			}
			if err := errors.Join(json.Unmarshal(doc, &w), json.Unmarshal(secrets, &w.Secrets)); err != nil {
				return fmt.Errorf("cannot decode a webhook: %w", err)
			}
			found = append(found, w)
		}
		return rows.Err()
	})
	return found, err
}

// DeleteWebhook implements port.WebhookStore.
func (s *Store) DeleteWebhook(ctx context.Context, w webhook.Webhook, notes ...port.Note) error {
	return wrap(s.write(ctx, notes, func(tx *Tx) error {
		return orConflict(tx.Exec("DELETE FROM webhooks WHERE tenant = ? AND id = ? AND version = ?", w.Tenant, w.ID, w.Version))
	}), "delete webhook", w.ID)
}

// Webhooks implements port.WebhookStore. It returns the same faults as List.
func (s *Store) Webhooks(ctx context.Context, tenant string, page port.Page) ([]webhook.Webhook, string, error) {
	if err := checkLimit(page); err != nil {
		return nil, "", err
	}
	in := list{kind: "webhooks 1", scope: tenant}
	from, err := in.after(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	found, err := s.webhooks(ctx, "WHERE tenant = ? || '' AND id > ? ORDER BY id LIMIT 0 + ?", tenant, string(from), page.Limit+1)
	if err != nil || len(found) <= page.Limit {
		return found, "", wrap(err, "list the webhooks of", tenant)
	}
	found = found[:page.Limit]
	return found, in.cursor([]byte(found[page.Limit-1].ID)), nil
}

// WebhooksDue implements port.WebhookStore.
func (s *Store) WebhooksDue(ctx context.Context, now time.Time, after string, limit int) ([]webhook.Ref, string, error) {
	rows, next, err := s.duePage(ctx, "webhooks", "wake_at", now, after, limit, "")
	due := make([]webhook.Ref, len(rows))
	for i, row := range rows {
		due[i] = webhook.Ref(row)
	}
	return due, next, wrap(err, "read", "the webhooks that are due")
}

// Progress implements port.WebhookStore.
func (s *Store) Progress(ctx context.Context, ref webhook.Ref) (p webhook.Progress, err error) {
	err = s.document(ctx, &p, "SELECT progress FROM webhooks WHERE tenant = ? AND id = ?", ref.Tenant, ref.ID)
	return p, wrap(err, "read the progress of webhook", ref.ID)
}

// SaveDeliveries implements port.WebhookStore.
func (s *Store) SaveDeliveries(ctx context.Context, p webhook.Progress, deliveries ...webhook.Delivery) error {
	docs := make([][]byte, len(deliveries))
	for i, d := range deliveries {
		var err error
		if docs[i], err = encode(&d); err != nil {
			return fmt.Errorf("cannot encode a delivery of webhook %s: %w", p.ID, err)
		}
	}
	return wrap(s.db.Write(ctx, func(tx *Tx) error {
		n, err := saveProgress(tx, p)
		if err != nil {
			return err
		}
		for i, d := range deliveries {
			if _, err := tx.Exec(`INSERT INTO deliveries (webhook, position, state, expires_at, doc) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT DO UPDATE SET state = excluded.state, expires_at = excluded.expires_at, doc = excluded.doc`,
				n, d.Position, string(d.State), moment(d.ExpiresAt), docs[i]); err != nil {
				return err
			}
		}
		return nil
	}), "store the deliveries of webhook", p.ID)
}

// ofWebhook is the query for the deliveries of a webhook that have not expired.
const ofWebhook = `SELECT deliveries.doc FROM deliveries JOIN webhooks ON webhooks.n = deliveries.webhook
	WHERE tenant = ? || '' AND id = ? || '' AND (expires_at IS NULL OR expires_at > ?) AND `

// Delivery implements port.WebhookStore.
func (s *Store) Delivery(ctx context.Context, ref webhook.Ref, position int64) (d webhook.Delivery, err error) {
	err = s.document(ctx, &d, ofWebhook+"position = 0 + ?", ref.Tenant, ref.ID, s.now(), position)
	return d.Read(), wrap(err, "read a delivery of webhook", ref.ID)
}

// PendingDeliveries implements port.WebhookStore.
func (s *Store) PendingDeliveries(ctx context.Context, ref webhook.Ref, limit int) ([]webhook.Delivery, error) {
	return s.deliveries(ctx, ref, "expires_at IS NULL ORDER BY position LIMIT 0 + ?", ref.Tenant, ref.ID, s.now(), limit)
}

// Deliveries implements port.WebhookStore.
func (s *Store) Deliveries(ctx context.Context, ref webhook.Ref, state webhook.State, before int64, limit int) ([]webhook.Delivery, error) {
	return s.deliveries(ctx, ref, "(?4 = '' OR state = ?4) AND position < ?5 ORDER BY position DESC LIMIT 0 + ?6",
		ref.Tenant, ref.ID, s.now(), string(state), before, limit)
}

func (s *Store) deliveries(ctx context.Context, ref webhook.Ref, where string, args ...any) ([]webhook.Delivery, error) {
	docs, err := s.docs(ctx, ofWebhook+where, args...)
	found := make([]webhook.Delivery, len(docs))
	for i, doc := range docs {
		if err := json.Unmarshal(doc, &found[i]); err != nil {
			return nil, fmt.Errorf("cannot decode a delivery of webhook %s: %w", ref.ID, err)
		}
		found[i] = found[i].Read()
	}
	return found, wrap(err, "read the deliveries of webhook", ref.ID)
}

// PurgeDeliveries implements port.WebhookStore.
func (s *Store) PurgeDeliveries(ctx context.Context, now time.Time, limit int) (int, error) {
	var purged int64
	err := s.db.Write(ctx, func(tx *Tx) (err error) {
		purged, err = tx.Exec("DELETE FROM deliveries WHERE rowid IN (SELECT rowid FROM deliveries WHERE expires_at <= ? LIMIT 0 + ?)", nanos(now), limit)
		return err
	})
	return int(purged), wrap(err, "purge", "deliveries")
}
