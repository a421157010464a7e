package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/series"
)

// A stream gets a checkpoint when this time or number of events has passed since the
// last one.
const (
	checkpointAge    = 10 * time.Second
	checkpointEvents = port.MaxFeedRecords
)

// tenantEvents are events for the stream of one tenant.
type tenantEvents struct {
	tenant  string
	entries []entry
	// done is the number of the first entries that are in the stream.
	done int
	err  error
}

// entry is an event for a stream.
type entry struct {
	change int
	event  events.Envelope
	// payload is what is signed, and record the signed event; both are made once.
	payload []byte
	record  port.FeedRecord
}

// sign makes the record of the event.
func (e *entry) sign(ctx context.Context, key events.Key) error {
	if e.payload != nil {
		return nil
	}
	info, ok := eventtype.Of(e.event.EventType)
	if !ok {
		return fault.New(fault.Internal, "unknown event type %q", e.event.EventType)
	}
	e.event.Notifier = &events.Notifier{Channel: info.Subject.Channel(), Delivery: events.DeliveryDSSE}
	payload, err := json.Marshal(e.event)
	if err != nil {
		return fmt.Errorf("cannot encode the event %s: %w", e.event.EventID, err)
	}
	if e.record.Data, err = events.Sign(ctx, payload, key); err != nil {
		return err
	}
	e.payload = payload
	return nil
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

// due reports whether the stream is to get a checkpoint.
func (s streamState) due(now time.Time) bool {
	fresh := s.Tree.Size - s.Checkpoint
	return fresh > 0 && (fresh >= checkpointEvents || now.Sub(s.CheckpointAt) >= checkpointAge)
}

// append appends those events of a tenant that its stream does not have.
func (s *Relay) append(ctx context.Context, key events.Key, t *tenantEvents) error {
	for i := range t.entries {
		e := &t.entries[i]
		id, err := events.ULID(e.event.EventID)
		if err != nil {
			return fault.Wrap(err, fault.Internal, "an event without an id")
		}
		e.record.ID, e.record.At = id, e.event.OccurredAt
	}
	for range commitTries {
		err := s.appendOnce(ctx, key, t)
		if !errors.Is(err, port.ErrConflict) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "too many concurrent writers of a stream; retry")
}

func (s *Relay) appendOnce(ctx context.Context, key events.Key, t *tenantEvents) error {
	stream := port.EventStream(t.tenant)
	head, err := s.feed.Head(ctx, stream)
	if err != nil {
		return fmt.Errorf("cannot read the head of the stream: %w", err)
	}
	records := make([]port.FeedRecord, len(t.entries))
	for i, e := range t.entries {
		records[i] = port.FeedRecord{ID: e.record.ID, At: e.record.At}
	}
	known := map[string]int64{}
	if head.Newest > 0 {
		if known, err = s.feed.Positions(ctx, stream, records); err != nil {
			return fmt.Errorf("cannot look for the events in the stream: %w", err)
		}
	}
	t.done = 0
	for t.done < len(t.entries) {
		batch, n, err := s.batch(ctx, key, t, head, known)
		if err != nil {
			return err
		}
		if len(batch.Records) > 0 {
			if head, err = s.feed.Append(ctx, stream, batch); err != nil {
				return fmt.Errorf("cannot append to the stream: %w", err)
			}
			s.record(ctx, series.Count(series.RelayEvents, len(batch.Records)))
		}
		for _, r := range batch.Records {
			known[r.ID] = 0
		}
		t.done += n
	}
	if err := s.seal(ctx, key, t.tenant, head); err != nil {
		s.log.WarnContext(ctx, "cannot write a checkpoint; the next relay does", "tenant", t.tenant, "error", err.Error())
	}
	return nil
}

// batch returns the next batch, and the number of entries that it covers.
func (s *Relay) batch(ctx context.Context, key events.Key, t *tenantEvents, head port.Head, known map[string]int64) (b port.Batch, n int, err error) {
	state, err := stateOf(head)
	if err != nil {
		return b, 0, err
	}
	b.After = head.Newest
	most := max(checkpointEvents-int(state.Tree.Size-state.Checkpoint), 1)
	size, taken := 0, map[string]bool{}
	for i := t.done; i < len(t.entries); i++ {
		e := &t.entries[i]
		if _, has := known[e.record.ID]; has || taken[e.record.ID] {
			n++
			continue
		}
		if err := e.sign(ctx, key); err != nil {
			return b, 0, err
		}
		if size += e.record.Size(); len(b.Records) == most || len(b.Records) > 0 && size > port.MaxFeedBatch {
			break
		}
		if state.Tree, err = state.Tree.Add(e.payload); err != nil {
			return b, 0, fault.Wrap(err, fault.Internal, "an event without a canonical form")
		}
		b.Records, taken[e.record.ID] = append(b.Records, e.record), true
		n++
	}
	if head.Epoch != "" {
		if b.Mark, err = s.checkpoint(key, t.tenant, head.Epoch, &state); err != nil {
			return b, 0, err
		}
	}
	b.State, err = json.Marshal(state)
	return b, n, err
}

// checkpoint returns the checkpoint of a stream, and notes it in the state; nil if none
// is due.
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

// seal writes a checkpoint of the stream if one is due.
func (s *Relay) seal(ctx context.Context, key events.Key, tenant string, head port.Head) error {
	state, err := stateOf(head)
	if err != nil || head.Newest == 0 {
		return err
	}
	mark, err := s.checkpoint(key, tenant, head.Epoch, &state)
	if err != nil || mark == nil {
		return err
	}
	b := port.Batch{After: head.Newest, Mark: mark}
	if b.State, err = json.Marshal(state); err != nil {
		return err
	}
	_, err = s.feed.Append(ctx, port.EventStream(tenant), b)
	if errors.Is(err, port.ErrConflict) {
		return nil // another relay has appended, and writes the checkpoint
	}
	return err
}
