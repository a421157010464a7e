package delivery

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// replaySent is the prefix of a consumer name, before the id of a replay. The cursor of that
// consumer is the number of events that the bus has received.
const replaySent = "sent/"

// errReplaying reports that another call publishes the events.
var errReplaying = errors.New("another call handles the replay")

// handleReplays calls do for the replays of a tenant, in order. After each success it moves the
// cursor of a consumer. It returns nil if another call handles the replays at the same time.
func handleReplays(ctx context.Context, feed port.Feed, log *slog.Logger, tenant, consumer string, do func(EventReplay, webhook.Place) error) error {
	stream := replayStreams + tenant
	head, err := feed.Head(ctx, stream)
	if err != nil {
		return fmt.Errorf("cannot read the replays: %w", err)
	}
	consumer += head.Epoch
	at, err := feed.Cursor(ctx, stream, consumer)
	if err != nil {
		return fmt.Errorf("cannot read the cursor of the replays: %w", err)
	}
	for at < head.Newest {
		records, err := feed.Read(ctx, stream, at, 1)
		if err != nil {
			return fmt.Errorf("cannot read the replays: %w", err)
		}
		to := head.Newest // the remaining replays have expired
		if len(records) > 0 {
			to = records[0].Position
			var r EventReplay
			if err := json.Unmarshal(records[0].Data, &r); err != nil {
				log.ErrorContext(ctx, "cannot read a replay; it is left out", "tenant", tenant, "replay", records[0].ID, "error", err.Error())
			} else if err := do(r, webhook.Place{Epoch: head.Epoch, Position: to}); err != nil {
				if errors.Is(err, errReplaying) {
					return nil
				}
				return fmt.Errorf("cannot handle the replay %s: %w", r.ID, err)
			}
		}
		if err := feed.MoveCursor(ctx, stream, consumer, at, to); err != nil {
			if errors.Is(err, port.ErrConflict) {
				return nil
			}
			return fmt.Errorf("cannot move the cursor of the replays: %w", err)
		}
		at = to
	}
	return nil
}

// replayPosition returns the position up to which a consumer has handled the replays of a
// tenant.
func replayPosition(ctx context.Context, feed port.Feed, tenant, consumer string) (int64, error) {
	stream := replayStreams + tenant
	head, err := feed.Head(ctx, stream)
	if err != nil {
		return 0, fmt.Errorf("cannot read the replays: %w", err)
	}
	return feed.Cursor(ctx, stream, consumer+head.Epoch)
}

// ReplayWork is Replay as the work of a StreamSweep.
func (s *Bus) ReplayWork() StreamWork {
	return StreamWork{s.Replay, func(ctx context.Context, tenant string) (int64, error) {
		return replayPosition(ctx, s.feed, tenant, busConsumer)
	}}
}

// Replay publishes the events of a tenant's replays for the bus. Each event has its place in
// the replay and a new signature. After a crash, at most a page of events is published twice.
func (s *Bus) Replay(ctx context.Context, tenant string) error {
	return handleReplays(ctx, s.feed, s.log, tenant, busConsumer, func(r EventReplay, _ webhook.Place) error {
		if r.WebhookID != "" {
			return nil
		}
		positions := decodePositions(r.Positions)
		stream, consumer := replayStreams+tenant, replaySent+r.ID
		at, err := s.feed.Cursor(ctx, stream, consumer)
		if err != nil {
			return err
		}
		for at < int64(len(positions)) {
			sent, err := s.replay(ctx, tenant, r, positions, int(at))
			if to := at + int64(sent); to > at {
				if err := s.feed.MoveCursor(ctx, stream, consumer, at, to); errors.Is(err, port.ErrConflict) {
					return errReplaying
				} else if err != nil {
					return err
				}
				at = to
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func decodePositions(differences []byte) (positions []int64) {
	var at int64
	for len(differences) > 0 {
		difference, n := binary.Uvarint(differences)
		if n <= 0 {
			return positions
		}
		at += int64(difference) //nolint:gosec // it was encoded from positions
		positions, differences = append(positions, at), differences[n:]
	}
	return positions
}

// replay publishes a page of the events of a replay, without the first skip events. done is the
// number of events that it handled. It skips events that are no longer stored.
func (s *Bus) replay(ctx context.Context, tenant string, r EventReplay, positions []int64, skip int) (done int, err error) {
	stream := port.EventStream(tenant)
	head, err := s.feed.Head(ctx, stream)
	if err != nil {
		return 0, fmt.Errorf("cannot read the head of the stream: %w", err)
	}
	if head.Epoch != r.Epoch {
		s.log.WarnContext(ctx, "the stream of a replay was lost", "tenant", tenant, "replay", r.ID)
		return len(positions) - skip, nil
	}
	records, err := s.feed.Read(ctx, stream, positions[skip]-1, busPage)
	if err != nil {
		return 0, fmt.Errorf("cannot read the stream: %w", err)
	}
	if len(records) == 0 {
		return len(positions) - skip, nil
	}
	key, err := s.keys.Signing(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot read the key of events: %w", err)
	}
	stored := map[int64]port.FeedRecord{}
	for _, record := range records {
		stored[record.Position] = record
	}
	var list []port.PublishedEvent
	var ordinals []int
	last := records[len(records)-1].Position
	for _, position := range positions[skip:] {
		if position > last {
			break
		}
		done++
		if record, ok := stored[position]; ok {
			e, err := replayed(ctx, record, r, events.Replay{Ordinal: skip + done, Total: len(positions)}, key)
			if err != nil {
				s.log.ErrorContext(ctx, "cannot replay an event", "tenant", tenant, "position", position, "replay", r.ID, "error", err.Error())
				continue
			}
			list, ordinals = append(list, e), append(ordinals, done)
		}
	}
	sent, err := s.send(ctx, tenant, list)
	if sent < len(list) {
		return ordinals[sent] - 1, err
	}
	return done, err
}

// replayed returns the message of an event of a replay.
func replayed(ctx context.Context, record port.FeedRecord, r EventReplay, place events.Replay, key events.Key) (m port.PublishedEvent, err error) {
	e, _, err := events.Unverified(record.Data)
	if err != nil {
		return m, err
	}
	var notifier events.Notifier
	if e.Notifier != nil {
		notifier = *e.Notifier
	}
	notifier.Replay = &place
	e.Notifier = &notifier
	payload, err := json.Marshal(e)
	if err != nil {
		return m, fmt.Errorf("cannot encode the event %s: %w", e.EventID, err)
	}
	signed, err := events.Sign(ctx, payload, key)
	if err != nil {
		return m, err
	}
	return port.PublishedEvent{Message: events.NewMessage(e, r.Epoch, record.Position, signed), Position: record.Position, ReplayID: r.ID}, nil
}
