package dynamo

import (
	stdbytes "bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ port.WebhookStore = (*Store)(nil)

// The items of a webhook. Its secrets are in a separate attribute, because operators print the
// record. The table encrypts both with KMS.
const (
	sortWebhook  = "webhook"
	sortProgress = "progress"
	attrSecrets  = "secrets"
	dueWebhook   = "webhook"
	// webhookShards is the number of partition keys of webhooks in the due index. A batch
	// of deliveries writes about four units there.
	webhookShards = 8
)

func webhookPK(ref webhook.Ref) string { return within(ref.Tenant, "webhook", ref.ID) }

// webhooksKey returns the partition key of a tenant's webhooks in the list index. Their sort
// keys are their ids.
func webhooksKey(tenant string) string { return within(tenant, "webhooks", "") }

// versioned returns the part that stores an item if the stored version is before. 0 means that
// no item is stored. It encodes each document into the attribute of that name.
func (s *Store) versioned(put item, before int64, documents map[string]any) (*part, error) {
	for name, v := range documents {
		doc, err := s.pack(v)
		if err != nil {
			return nil, err
		}
		put[name] = document(doc)
	}
	nonce := binary.BigEndian.AppendUint64(nil, s.config.Random())
	put[attrVersion], put[attrNonce] = number(before+1), bytes(nonce)
	is := replaceVersion(put, before)
	is.refused = func(_ context.Context, is item) error {
		if stdbytes.Equal(bytesOf(is[attrNonce]), nonce) {
			return errApplied
		}
		return port.ErrConflict
	}
	return is, nil
}

// SaveWebhook implements port.WebhookStore.
func (s *Store) SaveWebhook(ctx context.Context, w webhook.Webhook, p *webhook.Progress, notes ...port.Note) error {
	before := w.Version
	w.Version++
	put := keyOf(webhookPK(w.Ref()), sortWebhook)
	put[attrList], put[attrBorn] = text(webhooksKey(w.Tenant)), bytes([]byte(w.ID))
	record, err := s.versioned(put, before, map[string]any{attrDoc: w, attrSecrets: secretsDoc{w.Secrets}})
	if err != nil {
		return fmt.Errorf("cannot encode webhook %s: %w", w.ID, err)
	}
	parts := []*part{record}
	if p != nil {
		progress, err := s.progressPart(*p)
		if err != nil {
			return err
		}
		parts = append(parts, progress)
	}
	noted, err := s.noteParts(notes)
	if err == nil {
		err = s.retryOutdated(ctx, func() error { return s.write(ctx, append(parts, noted...)) })
	}
	return wrap(err, "store webhook", w.ID)
}

func (s *Store) progressPart(p webhook.Progress) (*part, error) {
	before := p.Version
	p.Version++
	put := keyOf(webhookPK(p.Ref()), sortProgress)
	put[attrDue] = text(dueKey(dueWebhook, shardOf(webhookPK(p.Ref()), webhookShards)))
	put[attrAt] = number(wholeSecond(p.WakeAt))
	is, err := s.versioned(put, before, map[string]any{attrDoc: p})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the progress of webhook %s: %w", p.ID, err)
	}
	return is, nil
}

// LoadWebhook implements port.WebhookStore.
func (s *Store) LoadWebhook(ctx context.Context, ref webhook.Ref) (w webhook.Webhook, err error) {
	is, err := s.get(ctx, keyOf(webhookPK(ref), sortWebhook), true)
	if err == nil && is == nil {
		err = port.ErrNotFound
	}
	if err == nil {
		w, err = webhookOf(is)
	}
	return w, wrap(err, "read webhook", ref.ID)
}

// secretsDoc is the document of the secrets of a webhook.
type secretsDoc struct {
	Secrets []webhook.Secret `json:"secrets"`
}

func webhookOf(is item) (w webhook.Webhook, err error) {
	var beside secretsDoc
	err = errors.Join(format.Unpack(documentOf(is[attrDoc]), &w), format.Unpack(documentOf(is[attrSecrets]), &beside))
	w.Secrets = beside.Secrets
	if err != nil {
		_, id := named(textOf(is[schema.Partition.Name]))
		return webhook.Webhook{}, fmt.Errorf("webhook %s: %w", id, fault.Wrap(err, fault.Internal, "unreadable stored webhook"))
	}
	return w, nil
}

// DeleteWebhook implements port.WebhookStore. The table's TTL removes the deliveries that an
// interrupted call leaves.
func (s *Store) DeleteWebhook(ctx context.Context, w webhook.Webhook, notes ...port.Note) error {
	gone := &part{key: keyOf(webhookPK(w.Ref()), sortWebhook), remove: true, refused: func(context.Context, item) error { return port.ErrConflict }}
	gone.where(attrVersion, "=", number(w.Version))
	noted, err := s.noteParts(notes)
	if err == nil {
		err = s.write(ctx, append([]*part{gone, {key: keyOf(webhookPK(w.Ref()), sortProgress), remove: true}}, noted...))
	}
	if err == nil {
		err = s.deleteAll(ctx, webhookPK(w.Ref()))
	}
	return wrap(err, "delete webhook", w.ID)
}

// deleteAll removes the items of a partition key.
func (s *Store) deleteAll(ctx context.Context, pk string) error {
	var keys []item
	if err := s.each(ctx, s.queryPartition(pk), func(is item) bool {
		keys = append(keys, keyOf(pk, textOf(is[schema.Sort.Name])))
		return true
	}); err != nil {
		return err
	}
	for _, key := range keys {
		if err := s.send(ctx, []*part{{key: key, remove: true}}); err != nil {
			return err
		}
	}
	return nil
}

// Webhooks implements port.WebhookStore. It returns the same faults as List. It may miss the
// newest commits.
func (s *Store) Webhooks(ctx context.Context, tenant string, page port.Page) ([]webhook.Webhook, string, error) {
	found, next, err := documentPage(ctx, s, listing{kind: "webhooks 1", scope: tenant}, webhooksKey(tenant), sortWebhook, page, webhookOf)
	return found, next, wrap(err, "list the webhooks of", tenant)
}

// WebhooksDue implements port.WebhookStore. It reads only the index, whose times are whole
// seconds.
func (s *Store) WebhooksDue(ctx context.Context, now time.Time, after string, limit int) ([]webhook.Ref, string, error) {
	entries, next, err := s.dueEntries(ctx, now, after, limit, sortProgress, webhookShards, dueWebhook)
	if err != nil {
		return nil, "", wrap(err, "read", "the webhooks that are due")
	}
	due := make([]webhook.Ref, len(entries))
	for i, e := range entries {
		due[i].Tenant, due[i].ID = named(textOf(e[schema.Partition.Name]))
	}
	return due, next, nil
}

// Progress implements port.WebhookStore.
func (s *Store) Progress(ctx context.Context, ref webhook.Ref) (p webhook.Progress, err error) {
	is, err := s.get(ctx, keyOf(webhookPK(ref), sortProgress), true)
	if err == nil && is == nil {
		err = port.ErrNotFound
	}
	if err == nil {
		err = format.Unpack(documentOf(is[attrDoc]), &p)
	}
	return p, wrap(err, "read the progress of webhook", ref.ID)
}
