package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// append appends those events of a tenant that its stream does not have.
func (s *Relay) append(ctx context.Context, key events.Key, t *tenantEvents) error {
	for i := range t.entries {
		e := &t.entries[i]
		if e.payload != nil {
			continue // the store has encoded it
		}
		var err error
		if e.record, err = eventRecord(e.event); err != nil {
			return err
		}
	}
	look := t.outbox == nil || !s.settled.Load() || len(t.late) > 0
	stream := port.EventStream(t.tenant)
	for range port.CommitTries {
		leave := s.turns.write(ctx, stream)
		err := s.appendOnce(ctx, key, t, look)
		leave()
		if !errors.Is(err, port.ErrConflict) {
			return err
		}
		s.turns.lost(stream)
		look = true // another relay may have appended the events
	}
	return fault.New(fault.Unavailable, "too many concurrent writers of a stream; retry")
}

// appendOnce appends the events after the head of the stream. With look, it first searches the
// stream for them. Without look, their changes must leave the outbox in the same commit, so
// that no event of a change in the outbox is in the stream.
func (s *Relay) appendOnce(ctx context.Context, key events.Key, t *tenantEvents, look bool) error {
	stream := port.EventStream(t.tenant)
	head, err := s.feed.Head(ctx, stream)
	if err != nil {
		return fmt.Errorf("cannot read the head of the stream: %w", err)
	}
	var known map[string]int64
	for t.done < len(t.entries) {
		if look && known == nil {
			if known, err = s.known(ctx, stream, head, t); err != nil {
				return err
			}
		}
		b, n, err := s.batch(ctx, key, t, head, known)
		if err != nil {
			return err
		}
		if !look && !t.ends(t.done+n) { // a change that does not fit into a batch
			look = true
			continue
		}
		if len(b.Records) > 0 {
			if head, err = t.put(ctx, s.feed, b, n); err != nil {
				return fmt.Errorf("cannot append to the stream: %w", err)
			}
			s.record(ctx, series.Count(series.RelayEvents, len(b.Records)))
		}
		t.done += n
	}
	if _, err := s.seal(ctx, key, t.tenant, head); err != nil {
		s.log.WarnContext(ctx, "cannot write a checkpoint; the next relay does", "tenant", t.tenant, "error", err.Error())
	}
	return nil
}

// known returns the positions of the events of a tenant that its stream already has.
func (s *Relay) known(ctx context.Context, stream string, head port.Head, t *tenantEvents) (map[string]int64, error) {
	if head.Newest == 0 {
		return map[string]int64{}, nil
	}
	records := make([]port.FeedRecord, len(t.entries))
	for i, e := range t.entries {
		records[i] = port.FeedRecord{ID: e.record.ID, At: e.record.At}
	}
	known, err := s.feed.Positions(ctx, stream, records)
	if err != nil {
		return nil, fmt.Errorf("cannot look for the events in the stream: %w", err)
	}
	return known, nil
}

// batch returns the next batch, and the number of entries that it covers. It ends with the
// last event of a change, unless the change has more events than a batch.
func (s *Relay) batch(ctx context.Context, key events.Key, t *tenantEvents, head port.Head, known map[string]int64) (b port.Batch, n int, err error) {
	state, err := stateOf(head)
	if err != nil {
		return b, 0, err
	}
	b.After, b.DueAt = head.Newest, s.clock.Now().Add(checkpointAge)
	due := max(checkpointEvents-int(state.Tree.Size-state.Checkpoint), 1)
	signing := &key
	if s.as.Bare {
		signing = nil
	}
	size, taken := 0, map[string]bool{}
	var whole struct { // the batch up to the last end of a change
		n, records int
		tree       events.Tree
	}
	for i := t.done; i < len(t.entries); i++ {
		e := &t.entries[i]
		if n > 0 && t.ends(i) {
			whole.n, whole.records, whole.tree = n, len(b.Records), state.Tree
		}
		if _, has := known[e.record.ID]; has || taken[e.record.ID] || t.appended[e.record.ID] {
			n++
			continue
		}
		if err := e.encode(ctx, signing); err != nil {
			return b, 0, err
		}
		size += e.record.Size()
		full := len(b.Records) == port.MaxFeedRecords || len(b.Records) > 0 && size > port.MaxFeedBatch
		if full || whole.n > 0 && len(b.Records) >= due {
			if whole.n > 0 {
				n, b.Records, state.Tree = whole.n, b.Records[:whole.records], whole.tree
			}
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
