package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// A stream gets a checkpoint when this time or number of events has passed since the
// last one.
const (
	checkpointAge    = 10 * time.Second
	checkpointEvents = port.MaxFeedRecords
)

// tenantEvents has the events for the stream of one tenant.
type tenantEvents struct {
	tenant  string
	entries []entry
	// done is the number of entries, from the first, that are in the stream.
	done int
	err  error

	// outbox stores the changes; nil without one. ids returns the id of the change with an
	// index.
	outbox port.CommitOutbox
	ids    func(change int) string
	// late are the changes that leave the outbox later than their events: those that cannot
	// be read, and those with events of several tenants.
	late map[int]bool
	// appended are the ids of the events that were appended. removed are the ids of the
	// changes that left the outbox with their events; apart reports an append that could not
	// remove changes.
	appended map[string]bool
	removed  []string
	apart    bool
}

// ends reports whether a change ends before an entry.
func (t *tenantEvents) ends(i int) bool {
	return i == len(t.entries) || i > 0 && t.entries[i-1].change != t.entries[i].change
}

// put appends a batch with events of the next n entries. The changes that end with it leave
// the outbox in the same commit.
func (t *tenantEvents) put(ctx context.Context, feed port.Feed, b port.Batch, n int) (head port.Head, err error) {
	joined := func() bool { return true }
	ids := t.leaving(b, n)
	if t.outbox != nil {
		ctx, joined = t.outbox.Join(ctx, ids...)
	}
	if head, err = feed.Append(ctx, port.EventStream(t.tenant), b); err != nil {
		return head, err
	}
	for _, r := range b.Records {
		t.appended[r.ID] = true
	}
	if !joined() {
		t.apart = true
	} else if t.outbox != nil {
		t.removed = append(t.removed, ids...)
	}
	return head, nil
}

// leaving returns the ids of the changes that end within the next n entries and have an event
// in the batch. It leaves out changes without one: all their events are in the stream, and they
// may have left the outbox.
func (t *tenantEvents) leaving(b port.Batch, n int) (ids []string) {
	fresh := map[string]bool{}
	for _, r := range b.Records {
		fresh[r.ID] = true
	}
	has := false
	for i := t.done; i < t.done+n; i++ {
		has = has || fresh[t.entries[i].record.ID]
		if change := t.entries[i].change; t.ends(i + 1) {
			if has && !t.late[change] {
				ids = append(ids, t.ids(change))
			}
			has = false
		}
	}
	return ids
}

// entry is an event for a stream.
type entry struct {
	change int
	event  events.Envelope // unless the store has encoded it
	// payload is the encoded event, record its stored form. Both are created once.
	payload []byte
	record  port.FeedRecord
	encoded bool
}

// encode creates the record of the event. It signs the event if key is not nil.
func (e *entry) encode(ctx context.Context, key *events.Key) (err error) {
	if e.encoded {
		return nil
	}
	if e.payload == nil {
		if e.payload, err = encodeEvent(e.event); err != nil {
			return err
		}
	}
	if e.record.Data = e.payload; key != nil {
		if e.record.Data, err = events.Sign(ctx, e.payload, *key); err != nil {
			return err
		}
	}
	e.encoded = true
	return nil
}

// encodeEvent returns the published form of an event, which is also what is signed.
func encodeEvent(e events.Envelope) ([]byte, error) {
	info, ok := eventtype.Of(e.EventType)
	if !ok {
		return nil, fault.New(fault.Internal, "unknown event type %q", e.EventType)
	}
	e.Notifier = &events.Notifier{Channel: info.Subject.Channel(), Delivery: events.DeliveryDSSE}
	payload, err := e.MarshalJSON() // json.Marshal would read the document again
	if err != nil {
		return nil, fmt.Errorf("cannot encode the event %s: %w", e.EventID, err)
	}
	return payload, nil
}

// eventRecord returns the record of an event without its data.
func eventRecord(e events.Envelope) (port.FeedRecord, error) {
	id, err := events.ULID(e.EventID)
	if err != nil {
		return port.FeedRecord{}, fault.Wrap(err, fault.Internal, "an event without an id")
	}
	return port.FeedRecord{ID: id, At: e.OccurredAt}, nil
}

// Encode returns the events of a change as they are stored without signatures. It is a
// port.EncodeEvents.
func (p Published) Encode(c port.Change) ([]port.FeedRecord, error) {
	all, err := p.Events(c)
	if err != nil {
		return nil, err
	}
	records := make([]port.FeedRecord, len(all))
	for i, e := range all {
		if e.TenantID != c.Run.Tenant {
			return nil, fault.New(fault.Internal, "event %s is of tenant %s, want %s", e.EventID, e.TenantID, c.Run.Tenant)
		}
		if records[i], err = eventRecord(e); err != nil {
			return nil, err
		}
		if records[i].Data, err = encodeEvent(e); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// streamState is the state of the head of a stream of events.
type streamState struct {
	// Tree is over all events of the stream.
	Tree events.Tree `json:"tree"`
	// Checkpoint is the size of the tree in the last checkpoint, CheckpointAt its time.
	Checkpoint   int64     `json:"checkpoint,omitempty"`
	CheckpointAt time.Time `json:"checkpointAt,omitzero"`
}

func stateOf(head port.Head) (state streamState, err error) {
	if head.State != nil {
		if err := json.Unmarshal(head.State, &state); err != nil {
			return state, fault.Wrap(err, fault.Internal, "unreadable state of a stream of events")
		}
	}
	if state.Tree.Size != head.Newest {
		return state, fault.New(fault.Internal, "the tree of a stream has %d events, want %d", state.Tree.Size, head.Newest)
	}
	return state, nil
}

// due reports whether the stream needs a checkpoint now.
func (s streamState) due(now time.Time) bool {
	fresh := s.Tree.Size - s.Checkpoint
	return fresh > 0 && (fresh >= checkpointEvents || now.Sub(s.CheckpointAt) >= checkpointAge)
}

// checkpoint returns a signed checkpoint of a stream and records it in the state. It returns
// nil if no checkpoint is due.
func (s *Relay) checkpoint(key events.Key, tenant, epoch string, state *streamState) ([]byte, error) {
	now := s.clock.Now().UTC().Round(0)
	if !state.due(now) {
		return nil, nil
	}
	signed, err := events.Checkpoint{Origin: events.Origin(tenant, epoch), Tree: state.Tree}.Sign(key)
	if err != nil {
		return nil, err
	}
	state.Checkpoint, state.CheckpointAt = state.Tree.Size, now
	return []byte(signed), nil
}

// seal writes a checkpoint of the stream if one is due, and reports whether the last one proves
// all events up to the head.
func (s *Relay) seal(ctx context.Context, key events.Key, tenant string, head port.Head) (sealed bool, err error) {
	state, err := stateOf(head)
	if err != nil || head.Newest == 0 {
		return err == nil, err
	}
	mark, err := s.checkpoint(key, tenant, head.Epoch, &state)
	if err != nil || mark == nil {
		return state.Checkpoint == head.Newest, err
	}
	b := port.Batch{After: head.Newest, Mark: mark}
	if b.State, err = json.Marshal(state); err != nil {
		return false, err
	}
	_, err = s.feed.Append(ctx, port.EventStream(tenant), b)
	if errors.Is(err, port.ErrConflict) {
		return false, nil // another relay has appended, and writes the checkpoint
	}
	return err == nil, err
}
