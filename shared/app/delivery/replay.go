package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// Replays sends events of tenants' streams again, to a webhook or to the bus.
//
// An accepted replay is a record in a separate stream of the feed. HandOver adds the replays
// for webhooks to their deliveries; Bus.Replay publishes those for the bus. After a crash, both
// resume from cursors. Replays is safe for concurrent use, by any number of processes.
type Replays struct {
	*Webhooks
	bus bool
}

// NewReplays returns Replays. bus reports whether the deployment has a bus.
func NewReplays(webhooks *Webhooks, bus bool) *Replays { return &Replays{webhooks, bus} }

const (
	// MaxReplay is the largest number of events in one replay.
	MaxReplay = 10_000
	// maxReplayScan is the number of positions that one request reads, which takes about two
	// seconds.
	maxReplayScan = 20_000
	// replayKeys is how long the idempotency key of a replay is known; a feed keeps no record
	// longer.
	replayKeys = 366 * 24 * time.Hour

	replayStreams  = "replays/"
	replayWebhooks = "webhooks/"
)

// Place is a place in a stream: after the event at Position of Epoch. If At is set, it is
// before the first event that occurred at At or later. Events are ordered by position. Their
// times may be out of order by some seconds.
type Place struct {
	Epoch    string
	Position int64
	At       time.Time
}

// ReplayRequest selects the events to send again.
type ReplayRequest struct {
	// From and To limit the range; nil is the start and the end of the stream.
	From, To *Place
	Filter   events.Filter
	// WebhookID is the webhook that receives the events that its own filter selects too; empty
	// for the bus.
	WebhookID string
	// Limit is the largest number of events, 1 to MaxReplay.
	Limit int
}

// EventReplay is an accepted replay.
type EventReplay struct {
	ID        string        `json:"id"`
	WebhookID string        `json:"webhookId,omitempty"`
	Filter    events.Filter `json:"filter,omitzero"`
	// Epoch and Range are the place of the events in the stream; Total is their number.
	Epoch string `json:"epoch"`
	webhook.Range
	Total int `json:"total"`
	// More reports whether the requested range has further positions after To.
	More      bool      `json:"more,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy"`
	Digest    string    `json:"digest"`
	// Positions are the positions of the events for the bus, as the varints of their
	// differences.
	Positions []byte `json:"positions,omitempty"`
	// Sent is the number of events that were sent, or that the deliveries of the webhook have
	// handled.
	Sent int `json:"-"`
}

// Replay accepts a replay. A request with a used idempotency key returns the first replay with
// its progress; existing is then true. A request without a key is always new. Faults:
// InvalidRequest with the field, NotFound for the webhook, IdempotencyMismatch, Unprocessable
// if no event is selected, without a bus, or if the webhook has too many redeliveries.
func (s *Replays) Replay(ctx context.Context, who port.Identity, in ReplayRequest, key, digest string) (r EventReplay, existing bool, err error) {
	if err := change.CheckKey(key); err != nil {
		return r, false, err
	}
	if in.Limit < 1 || in.Limit > MaxReplay {
		return r, false, fault.Invalid("limit", "limit: %d is out of range, want 1 to %d", in.Limit, MaxReplay)
	}
	id := "rpl_" + s.random.Hex(16)
	if key != "" {
		sum := sha256.Sum256([]byte(who.Tenant + "\x00" + key))
		id = "rpl_" + hex.EncodeToString(sum[:16])
	}
	for range port.CommitTries {
		stream := replayStreams + who.Tenant
		head, err := s.feed.Head(ctx, stream)
		if err != nil {
			return r, false, fmt.Errorf("cannot read the replays: %w", err)
		}
		if r, existing, err = s.known(ctx, who.Tenant, id, digest); err != nil || existing {
			return r, existing, err
		}
		if r, err = s.plan(ctx, who, in); err != nil {
			return r, false, err
		}
		r.ID, r.Digest, r.CreatedAt, r.CreatedBy = id, digest, s.now(), who.Subject
		document, err := json.Marshal(r)
		if err != nil {
			return r, false, fmt.Errorf("cannot encode the replay: %w", err)
		}
		_, err = s.feed.Append(ctx, stream, port.Batch{
			After: head.Newest, Records: []port.FeedRecord{{ID: id, At: r.CreatedAt, Data: document}}, DueAt: r.CreatedAt,
		})
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		if err != nil {
			return r, false, fmt.Errorf("cannot store the replay: %w", err)
		}
		if err := s.HandOver(ctx, who.Tenant); err != nil {
			s.log.WarnContext(ctx, "cannot begin a replay; a sweep does", "tenant", who.Tenant, "replay", id, "error", err.Error())
		}
		return r, false, nil
	}
	return r, false, fault.New(fault.Unavailable, "too many concurrent replays; retry")
}

// plan returns the replay of a request, without its id.
func (s *Replays) plan(ctx context.Context, who port.Identity, in ReplayRequest) (r EventReplay, err error) {
	filters := []events.Filter{in.Filter}
	switch {
	case in.WebhookID != "":
		v, err := s.Webhook(ctx, who, in.WebhookID)
		if err != nil {
			return r, err
		}
		if len(v.Progress.Replays) >= webhook.MaxReplays {
			return r, tooManyReplays(len(v.Progress.Replays))
		}
		filters = append(filters, v.Filter)
	case !s.bus:
		return r, fault.New(fault.Unprocessable, "target.bus: the deployment has no bus, want a webhook")
	}
	stream := port.EventStream(who.Tenant)
	head, err := s.feed.Head(ctx, stream)
	if err != nil {
		return r, fmt.Errorf("cannot read the stream of events: %w", err)
	}
	first, last := max(head.Oldest-1, 0), head.Newest
	if first, err = s.position(ctx, stream, head, "from", in.From, first); err == nil {
		last, err = s.position(ctx, stream, head, "to", in.To, last)
	}
	if err != nil {
		return r, err
	}
	r = EventReplay{WebhookID: in.WebhookID, Filter: in.Filter, Epoch: head.Epoch, Range: webhook.Range{From: first + 1, To: last}}
	if err := s.choose(ctx, stream, &r, in.Limit, filters); err != nil {
		return r, err
	}
	if r.Total == 0 {
		return r, fault.New(fault.Unprocessable, "no event from position %d to %d is selected, want another range or filter", r.From, r.To)
	}
	return r, nil
}

// choose counts the selected events of a replay and, for the bus, stores their positions. It
// ends the range after limit events or maxReplayScan positions.
func (s *Replays) choose(ctx context.Context, stream string, r *EventReplay, limit int, filters []events.Filter) error {
	begin, last, before := r.From-1, r.To, int64(0)
	var positions []byte
	for after := begin; after < last; {
		records, err := s.feed.Read(ctx, stream, after, deliverPage)
		if err != nil {
			return fmt.Errorf("cannot read the stream of events: %w", err)
		}
		if len(records) == 0 {
			return nil
		}
		for _, record := range records {
			if record.Position > last {
				return nil
			}
			after = record.Position
			if e, err := readEvent(record); err == nil && matchesAll(e.Envelope, filters) {
				r.Total++
				positions = binary.AppendUvarint(positions, uint64(after-before)) //nolint:gosec // positions grow
				before = after
			}
			if r.WebhookID == "" {
				r.Positions = positions
			}
			if r.Total == limit || after >= begin+maxReplayScan {
				r.To, r.More = after, after < last
				return nil
			}
		}
	}
	return nil
}

func matchesAll(e events.Envelope, filters []events.Filter) bool {
	for _, f := range filters {
		if !f.Matches(e) {
			return false
		}
	}
	return true
}

// position returns the position of a place, or fallback for nil. Fault: InvalidRequest with the
// field for a cursor that the stream does not have.
func (s *Replays) position(ctx context.Context, stream string, head port.Head, field string, p *Place, fallback int64) (int64, error) {
	switch {
	case p == nil:
		return fallback, nil
	case p.At.IsZero():
		if p.Epoch != head.Epoch || p.Position < head.Oldest-1 || p.Position > head.Newest {
			return 0, fault.Invalid(field, "%s: the stream does not have this cursor, want one from %s-%d to %[2]s-%d",
				field, head.Epoch, max(head.Oldest-1, 0), head.Newest)
		}
		return p.Position, nil
	}
	return s.before(ctx, stream, head, p.At)
}

// before returns the position before the first event that occurred at a time or later.
func (s *Webhooks) before(ctx context.Context, stream string, head port.Head, at time.Time) (int64, error) {
	first, end := head.Oldest, head.Newest+1 // the event is in between
	for first < end {
		middle := first + (end-first)/2
		records, err := s.feed.Read(ctx, stream, middle-1, 1)
		if err != nil {
			return 0, fmt.Errorf("cannot read the stream of events: %w", err)
		}
		if len(records) > 0 && records[0].At.Before(at) {
			first = records[0].Position + 1
		} else {
			end = middle
		}
	}
	return max(first-1, 0), nil
}

// known returns the replay with an id and its progress. Fault: IdempotencyMismatch for another
// digest.
func (s *Replays) known(ctx context.Context, tenant, id, digest string) (r EventReplay, ok bool, err error) {
	stream := replayStreams + tenant
	found, err := s.feed.Positions(ctx, stream, []port.FeedRecord{{ID: id, At: s.now().Add(-replayKeys)}})
	if err != nil || len(found) == 0 {
		return r, false, err
	}
	records, err := s.feed.Read(ctx, stream, found[id]-1, 1)
	if err != nil || len(records) == 0 || records[0].ID != id {
		return r, false, err
	}
	if err := json.Unmarshal(records[0].Data, &r); err != nil {
		return r, false, fault.Wrap(err, fault.Internal, "unreadable replay %s", id)
	}
	if r.Digest != digest {
		return r, false, fault.New(fault.IdempotencyMismatch, "the Idempotency-Key was used for another replay")
	}
	head, err := s.feed.Head(ctx, stream)
	if err == nil {
		r.Sent, err = s.sent(ctx, tenant, r, webhook.Place{Epoch: head.Epoch, Position: records[0].Position})
	}
	return r, true, err
}

// sent returns the number of sent events of a replay at a place of the stream of replays.
func (s *Replays) sent(ctx context.Context, tenant string, r EventReplay, at webhook.Place) (int, error) {
	if r.WebhookID == "" {
		done, err := s.feed.Cursor(ctx, replayStreams+tenant, busConsumer+at.Epoch)
		if err != nil || done >= at.Position {
			return r.Total, err
		}
		sent, err := s.feed.Cursor(ctx, replayStreams+tenant, replaySent+r.ID)
		return int(sent), err
	}
	p, err := s.store.Progress(ctx, webhook.Ref{Tenant: tenant, ID: r.WebhookID})
	if errors.Is(err, port.ErrNotFound) {
		return r.Total, nil // a deleted webhook gets no more
	}
	for _, one := range p.Replays {
		if one.ID == r.ID {
			return one.Sent, err
		}
	}
	if !p.Took(at) {
		return 0, err
	}
	return r.Total, err
}

// HandOver adds each replay of a tenant to the deliveries of its webhook, once.
func (s *Subscriptions) HandOver(ctx context.Context, tenant string) error {
	return handleReplays(ctx, s.feed, s.log, tenant, replayWebhooks, func(r EventReplay, at webhook.Place) error {
		if r.WebhookID == "" {
			return nil
		}
		ref := webhook.Ref{Tenant: tenant, ID: r.WebhookID}
		for range port.CommitTries {
			p, err := s.store.Progress(ctx, ref)
			if errors.Is(err, port.ErrNotFound) || err == nil && p.Took(at) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("cannot read the progress of the webhook: %w", err)
			}
			err = s.store.SaveDeliveries(ctx, p.Take(webhook.Replay{ID: r.ID, Range: r.Range, Filter: &r.Filter, Next: r.From, Total: r.Total}, at, s.now()))
			if errors.Is(err, port.ErrConflict) {
				continue
			}
			if err != nil {
				return fmt.Errorf("cannot store the replay: %w", err)
			}
			s.wake(ctx, ref, 0)
			return nil
		}
		return fault.New(fault.Unavailable, "too many concurrent changes of webhook %s", r.WebhookID)
	})
}

// ReplayWork is HandOver as the work of a StreamSweep.
func (s *Subscriptions) ReplayWork() StreamWork {
	return StreamWork{s.HandOver, func(ctx context.Context, tenant string) (int64, error) {
		return replayPosition(ctx, s.feed, tenant, replayWebhooks)
	}}
}
