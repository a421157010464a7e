package fake

import (
	"context"

	"github.com/sortie-dev/sortie/shared/port"
)

// Outbox wraps another CommitOutbox and adds failures. The subject of a call is the ID of the
// change, or of the first change. It is safe for concurrent use if the wrapped one is.
type Outbox struct {
	calls
	inner port.CommitOutbox
}

var _ port.CommitOutbox = (*Outbox)(nil)

// NewOutbox wraps inner.
func NewOutbox(inner port.CommitOutbox, plan Plan) *Outbox {
	return &Outbox{inner: inner, calls: calls{plan: plan}}
}

// SetAside implements port.Outbox.
func (o *Outbox) SetAside(ctx context.Context, c port.StoredChange) error {
	return o.call(ctx, "SetAside", c.ID, true, func() error { return o.inner.SetAside(ctx, c) })
}

// Stored implements port.Outbox.
func (o *Outbox) Stored(ctx context.Context, after string, limit int) (changes []port.StoredChange, next string, err error) {
	changes, err = result(ctx, &o.calls, "Stored", "", false, func() (page []port.StoredChange, err error) {
		page, next, err = o.inner.Stored(ctx, after, limit)
		return page, err
	})
	if err != nil {
		return nil, "", err
	}
	return changes, next, nil
}

// Published implements port.Outbox.
func (o *Outbox) Published(ctx context.Context, ids ...string) error {
	subject := ""
	if len(ids) > 0 {
		subject = ids[0]
	}
	return o.call(ctx, "Published", subject, true, func() error { return o.inner.Published(ctx, ids...) })
}

// Wait implements port.CommitOutbox.
func (o *Outbox) Wait(ctx context.Context, after string) error {
	return o.call(ctx, "Wait", after, false, func() error { return o.inner.Wait(ctx, after) })
}

// Join implements port.CommitOutbox. No plan applies, because the append is a call of the feed.
func (o *Outbox) Join(ctx context.Context, ids ...string) (context.Context, func() bool) {
	return o.inner.Join(ctx, ids...)
}
