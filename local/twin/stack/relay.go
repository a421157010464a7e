package stack

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app/activity"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

const (
	// relayPause is the delay before a failed relay is retried.
	relayPause = time.Second
	// gatherPause delays a relay to collect the events of several commits. A relay is a commit
	// with an fsync, and one row of a stream can hold all of its events. Inference tasks that
	// wait for their first token need the same file and CPUs.
	gatherPause = 20 * time.Millisecond
	// relaySweep is the longest interval between sweeps of streams. A sweep writes the last
	// checkpoints and continues replays.
	relaySweep = 15 * time.Second
)

// wireRelay opens the signing keys of events and creates the relay.
func (s *Stack) wireRelay() error {
	var err error
	if s.eventKeys, err = keyfile.OpenEvents(filepath.Join(s.addresses.Data, EventKeysFile)); err != nil {
		return fmt.Errorf("cannot open the keys of events: %w", err)
	}
	published := api.Published(s.serviceConfig().PublicURL)
	s.store.EncodeEvents(published.Encode)
	published.Bare = true // this process has the signing key
	s.relay = delivery.NewRelay(s.feed, s.eventKeys, delivery.NoTurns{}, s.clock, s.config.Log, published, s.metrics.Record)
	s.tally = activity.NewTally(s.store, s.feed, s.clock, s.config.Log)
	return nil
}

// relayChanges appends the events of commits to their streams until the stack stops.
func (s *Stack) relayChanges(ctx context.Context) {
	outbox := &patientOutbox{CommitOutbox: s.store, clock: s.clock, until: map[string]time.Time{}}
	for ctx.Err() == nil {
		drained, err := s.relay.Drain(ctx, outbox, readChange, nil)
		if err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "cannot relay events; they are relayed later", "error", err.Error())
		}
		outbox.leave(drained.Unreadable)
		wait, done := ctx, func() {}
		if err != nil || drained.Left > len(drained.Unreadable) {
			wait, done = s.within(ctx, relayPause)
		}
		if err := s.store.Wait(wait, outbox.last); err != nil && wait.Err() == nil {
			s.config.Log.WarnContext(ctx, "cannot wait for commits", "error", err.Error())
			_ = clock.Sleep(ctx, s.clock, relayPause) //nolint:errcheck // ctx has ended
		}
		done()
		_ = clock.Sleep(ctx, s.clock, gatherPause) //nolint:errcheck // ctx has ended
	}
}

// unreadablePause is the delay before an unreadable change is retried.
const unreadablePause = time.Hour

// patientOutbox is an outbox that hides unreadable changes for unreadablePause.
type patientOutbox struct {
	port.CommitOutbox
	clock clock.Clock
	until map[string]time.Time
	// last is the id of the last change that Stored read.
	last string
}

// leave hides changes for unreadablePause.
func (o *patientOutbox) leave(ids []string) {
	for _, id := range ids {
		o.until[id] = o.clock.Now().Add(unreadablePause)
	}
}

// Stored implements port.Outbox.
func (o *patientOutbox) Stored(ctx context.Context, after string, limit int) ([]port.StoredChange, string, error) {
	changes, next, err := o.CommitOutbox.Stored(ctx, after, limit)
	if len(changes) > 0 {
		o.last = changes[len(changes)-1].ID
	}
	now := o.clock.Now()
	return slices.DeleteFunc(changes, func(c port.StoredChange) bool { return now.Before(o.until[c.ID]) }), next, err
}

// within returns a context that ends after d on the stack's clock.
func (s *Stack) within(ctx context.Context, d time.Duration) (context.Context, func()) {
	limited, cancel := context.WithCancel(ctx)
	go func() {
		_ = clock.Sleep(limited, s.clock, d) //nolint:errcheck // limited has ended
		cancel()
	}()
	return limited, cancel
}

func readChange(c port.StoredChange) delivery.Change {
	change := delivery.Change{ID: c.ID, At: c.At}
	change.Change, change.Err = sqlite.ChangeOf(c.Record)
	return change
}

// sweepStreams writes the last checkpoints, continues replays and deletes expired events until
// the stack stops. Other loops publish the events and queue the webhooks.
func (s *Stack) sweepStreams(ctx context.Context) {
	events, replays := []delivery.StreamWork{s.dispatch.Work().Watched(), {Do: s.tally.Count, Position: s.tally.Position}}, []delivery.StreamWork{s.dispatch.ReplayWork()}
	if s.bus != nil {
		events, replays = append(events, s.bus.Work().Watched()), append(replays, s.bus.ReplayWork())
	}
	sweep := delivery.NewStreamSweep(s.relay, events, replays)
	for clock.Sleep(ctx, s.clock, min(relaySweep, s.config.SweepInterval)) == nil {
		if err := errors.Join(sweep.Sweep(ctx), s.relay.Trim(ctx)); err != nil && !errors.Is(err, context.Canceled) {
			s.config.Log.WarnContext(ctx, "a sweep of the streams failed; the next one repeats it", "error", err.Error())
		}
	}
}

// endStreams asks the readers of events to reconnect. A reader that does not receive its last
// message in time is disconnected when the server stops.
func (s *Stack) endStreams(ctx context.Context) error {
	if err := s.streams.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
