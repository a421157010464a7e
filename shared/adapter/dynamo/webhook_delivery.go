package dynamo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// Pending deliveries have separate sort keys, so that a query returns only them.
const (
	sortPending = "pending#"
	sortEnded   = "ended#"
)

// pendingTTL is when the table's TTL removes the pending deliveries of a deleted webhook, if
// its deletion was interrupted. It is longer than the schedule of attempts.
const pendingTTL = 60 * 24 * time.Hour

func deliverySort(pending bool, position int64) string {
	if pending {
		return fmt.Sprintf("%s%019d", sortPending, position)
	}
	return fmt.Sprintf("%s%019d", sortEnded, position)
}

// SaveDeliveries implements port.WebhookStore.
func (s *Store) SaveDeliveries(ctx context.Context, p webhook.Progress, deliveries ...webhook.Delivery) error {
	progress, err := s.progressPart(p)
	if err != nil {
		return err
	}
	if p.Version == 0 {
		return port.ErrConflict
	}
	parts := []*part{progress}
	for _, d := range deliveries {
		doc, err := s.pack(d)
		if err != nil {
			return fmt.Errorf("cannot encode a delivery of webhook %s: %w", p.ID, err)
		}
		pending, expires := d.State == webhook.Pending, d.ExpiresAt
		if pending {
			expires = s.now().Add(pendingTTL)
		}
		put := keyOf(webhookPK(p.Ref()), deliverySort(pending, d.Position))
		put[attrDoc], put[schema.TTL] = document(doc), number(expires.Unix())
		parts = append(parts, &part{put: put})
		if d.Stored && d.WasPending != pending {
			parts = append(parts, &part{key: keyOf(webhookPK(p.Ref()), deliverySort(!pending, d.Position)), remove: true})
		}
	}
	err = s.retryOutdated(ctx, func() error { return s.write(ctx, parts) })
	return wrap(err, "store the deliveries of webhook", p.ID)
}

// Delivery implements port.WebhookStore.
func (s *Store) Delivery(ctx context.Context, ref webhook.Ref, position int64) (webhook.Delivery, error) {
	for _, pending := range []bool{true, false} {
		is, err := s.get(ctx, keyOf(webhookPK(ref), deliverySort(pending, position)), true)
		if err == nil && is == nil {
			continue
		}
		var d webhook.Delivery
		if err == nil {
			d, err = s.deliveryOf(is)
		}
		if err == nil && s.expired(d) {
			err = port.ErrNotFound
		}
		return d.Read(), wrap(err, "read a delivery of webhook", ref.ID)
	}
	return webhook.Delivery{}, port.ErrNotFound
}

func (s *Store) expired(d webhook.Delivery) bool {
	return !d.ExpiresAt.IsZero() && !d.ExpiresAt.After(s.now())
}

// PendingDeliveries implements port.WebhookStore.
func (s *Store) PendingDeliveries(ctx context.Context, ref webhook.Ref, limit int) ([]webhook.Delivery, error) {
	found, err := s.deliveries(ctx, ref, true, "", 1<<62, limit, true)
	return found, wrap(err, "read the pending deliveries of webhook", ref.ID)
}

// Deliveries implements port.WebhookStore.
func (s *Store) Deliveries(ctx context.Context, ref webhook.Ref, state webhook.State, before int64, limit int) (found []webhook.Delivery, err error) {
	for _, pending := range []bool{true, false} {
		if state != "" && pending != (state == webhook.Pending) {
			continue
		}
		some, err := s.deliveries(ctx, ref, pending, state, before, limit, false)
		if err != nil {
			return nil, wrap(err, "read the deliveries of webhook", ref.ID)
		}
		found = append(found, some...)
	}
	slices.SortFunc(found, func(a, b webhook.Delivery) int { return cmp.Compare(b.Position, a.Position) })
	return found[:min(len(found), limit)], nil
}

// deliveries returns at most limit deliveries below a position, in ascending order or from
// the newest position.
func (s *Store) deliveries(
	ctx context.Context, ref webhook.Ref, pending bool, state webhook.State, before int64, limit int, ascending bool,
) (found []webhook.Delivery, err error) {
	q := s.queryRange(webhookPK(ref), deliverySort(pending, 0), deliverySort(pending, before-1))
	q.ScanIndexForward = aws.Bool(ascending)
	q.Limit = aws.Int32(int32(min(limit, 1000))) //nolint:gosec // G115: at most 1000
	var damaged error
	err = s.each(ctx, q, func(is item) bool {
		var d webhook.Delivery
		if d, damaged = s.deliveryOf(is); damaged != nil {
			return false
		}
		if !s.expired(d) && (state == "" || d.State == state) {
			found = append(found, d.Read())
		}
		return len(found) < limit
	})
	if err == nil {
		err = damaged
	}
	return found, err
}

// deliveryOf returns the delivery in an item. It caches decoded deliveries, because each turn
// of a webhook reads its pending ones.
func (s *Store) deliveryOf(is item) (d webhook.Delivery, err error) {
	doc := documentOf(is[attrDoc])
	if known, ok := s.decoded.deliveries.Get(doc); ok {
		return known, nil
	}
	if err = format.Unpack(doc, &d); err == nil {
		s.decoded.deliveries.Put(doc, &d)
	}
	return d, err
}

// PurgeDeliveries implements port.WebhookStore: the table's TTL removes expired deliveries.
func (s *Store) PurgeDeliveries(context.Context, time.Time, int) (int, error) { return 0, nil }
