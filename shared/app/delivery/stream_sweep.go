package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/port"
)

// StreamSweep finishes the work on the streams of events: it writes the last checkpoint,
// publishes the events that the bus does not have, queues webhooks, and continues replays. It
// reads only the streams that are due, so that streams without new events cost nothing.
//
// An append makes its stream due. The sweep settles a stream without remaining work. A stream
// with remaining work is due again later, behind the others, so that the next sweep begins with
// the streams that this one did not reach. It is safe for concurrent use, by any number of
// processes.
type StreamSweep struct {
	relay           *Relay
	events, replays []StreamWork
}

// StreamWork handles the records of a tenant's stream.
type StreamWork struct {
	// Do handles the records that are not handled yet.
	Do func(ctx context.Context, tenant string) error
	// Position returns the position up to which the records are handled.
	Position func(ctx context.Context, tenant string) (int64, error)
}

// Watched returns the work with a Do that does nothing, because another loop of the process does
// the work. The sweep only checks its position, and the stream stays due until the work is done.
func (w StreamWork) Watched() StreamWork {
	w.Do = func(context.Context, string) error { return nil }
	return w
}

// NewStreamSweep returns a StreamSweep. events is the work on streams of events besides
// checkpoints, replays that on streams of replays.
func NewStreamSweep(relay *Relay, events, replays []StreamWork) *StreamSweep {
	return &StreamSweep{relay, events, replays}
}

const (
	streamPage = 100
	// dueAgain is the time after which a stream with remaining work is due again.
	dueAgain = 10 * time.Second
	// sweepMargin is the time before the deadline of its context at which a sweep stops.
	sweepMargin = 5 * time.Second
)

// Sweep handles the streams that are due, until sweepMargin before the deadline of ctx. It
// returns the joined errors of all streams.
func (s *StreamSweep) Sweep(ctx context.Context) error {
	one := &streamSweep{StreamSweep: s, key: sync.OnceValues(func() (events.Key, error) { return s.relay.keys.Signing(ctx) })}
	var failed []error
	for _, group := range []string{replayStreams, port.EventStreams} {
		failed = append(failed, eachDue(ctx, s.relay.feed, group, s.relay.clock.Now(), func(streams []string) bool {
			failed = append(failed, one.all(ctx, streams, true))
			return s.timeLeft(ctx)
		}))
	}
	return errors.Join(append(failed, one.continueWalk(ctx))...)
}

// timeLeft reports whether more than sweepMargin is left until the deadline of ctx.
func (s *StreamSweep) timeLeft(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return ctx.Err() == nil && (!limited || deadline.Sub(s.relay.clock.Now()) > sweepMargin)
}

// eachDue calls do with pages of the streams of a group that are due, until it returns false.
func eachDue(ctx context.Context, feed port.Feed, group string, by time.Time, do func(streams []string) (more bool)) error {
	for after := ""; ; {
		streams, next, err := feed.Due(ctx, group, by, after, streamPage)
		if err != nil {
			return fmt.Errorf("cannot list the streams that are due: %w", err)
		}
		if after = next; !do(streams) || next == "" {
			return nil
		}
	}
}

// streamSweep is one sweep.
type streamSweep struct {
	*StreamSweep
	key func() (events.Key, error)
}

// all handles several streams at a time. due reports whether they are due.
func (s *streamSweep) all(ctx context.Context, streams []string, due bool) error {
	var mu sync.Mutex
	var failed []error
	eachTenant(streams, func(stream string) error {
		if !s.timeLeft(ctx) {
			return nil // it stays due
		}
		return s.finish(ctx, stream, due)
	}, func(_ string, err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, err)
	})
	return errors.Join(failed...)
}

// finish does the remaining work on a stream, and settles the stream once no work is left.
func (s *streamSweep) finish(ctx context.Context, stream string, due bool) error {
	feed, group := s.relay.feed, stream[:strings.Index(stream, "/")+1]
	tenant, works := stream[len(group):], s.replays
	head, err := feed.Head(ctx, stream)
	if err != nil {
		return fmt.Errorf("cannot read the head of %s: %w", stream, err)
	}
	done := true
	var failed []error
	note := func(ok bool, err error) {
		done = done && ok && err == nil
		if err != nil {
			failed = append(failed, fmt.Errorf("cannot finish %s: %w", stream, err))
		}
	}
	if group == port.EventStreams {
		works = s.events
		key, err := s.key()
		if err == nil {
			note(s.relay.seal(ctx, key, tenant, head))
		} else {
			note(false, err)
		}
	}
	for _, w := range works {
		note(true, w.Do(ctx, tenant))
		at, err := w.Position(ctx, tenant)
		note(at >= head.Newest || head.Oldest > head.Newest, err) // or all have expired
	}
	switch {
	case !done:
		err = feed.SetDue(ctx, stream, s.relay.clock.Now().Add(dueAgain))
	case due:
		if err = feed.Settle(ctx, stream, head.Newest); errors.Is(err, port.ErrConflict) {
			err = feed.SetDue(ctx, stream, s.relay.clock.Now().Add(dueAgain)) // it has grown meanwhile
		}
	}
	return errors.Join(append(failed, err)...)
}

// Trim deletes expired records of streams, for a feed that does not delete them by itself. It
// returns the joined errors of all streams.
func (s *Relay) Trim(ctx context.Context) error {
	trim := func(prefix string) error {
		return port.WalkStreams(ctx, s.feed, prefix, func(tenant string) error {
			if _, err := port.TrimStream(ctx, s.feed, prefix+tenant); err != nil {
				return fmt.Errorf("cannot trim the stream of tenant %s: %w", tenant, err)
			}
			return nil
		})
	}
	return errors.Join(trim(port.EventStreams), trim(replayStreams))
}
