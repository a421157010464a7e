package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	// walkStream is the stream whose state is that of the walk. It has no records.
	walkStream = "walk/streams"
	// walkFor is how long walks are repeated. An earlier version of the relay, which makes no
	// stream due, runs beside this one for less time.
	walkFor = time.Hour
)

// walk is a sweep over all streams, also those that are not due. Earlier versions have left
// work there without making the streams due. Walks end after one that began walkFor after the
// first walk or later.
type walk struct {
	// Since is the time at which the first walk began, Began that of this one.
	Since time.Time `json:"since"`
	Began time.Time `json:"began,omitzero"`
	// Replays reports that the walk is at the streams of replays, which follow those of events.
	// After is the cursor of the next page.
	Replays bool   `json:"replays,omitempty"`
	After   string `json:"after,omitempty"`
	Done    bool   `json:"done,omitempty"`
}

// continueWalk continues the walk until it ends or sweepMargin is reached.
func (s *streamSweep) continueWalk(ctx context.Context) error {
	feed, now := s.relay.feed, s.relay.clock.Now().UTC().Round(0)
	head, err := feed.Head(ctx, walkStream)
	if err != nil {
		return fmt.Errorf("cannot read the state of the walk: %w", err)
	}
	w := walk{Since: now}
	if head.State != nil {
		if err := json.Unmarshal(head.State, &w); err != nil {
			return fault.Wrap(err, fault.Internal, "unreadable state of the walk through the streams")
		}
	}
	if w.Began.IsZero() {
		w.Began = now
	}
	var failed []error
	for !w.Done && !w.Began.IsZero() && s.timeLeft(ctx) {
		group := port.EventStreams
		if w.Replays {
			group = replayStreams
		}
		streams, next, err := feed.Streams(ctx, group, w.After, streamPage)
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("cannot list the streams: %w", err))...)
		}
		failed = append(failed, s.all(ctx, streams, false))
		if !s.timeLeft(ctx) {
			break // some of the page may be left
		}
		switch w.After = next; {
		case next != "":
		case !w.Replays:
			w.Replays = true
		default:
			w = walk{Since: w.Since, Done: w.Began.Sub(w.Since) >= walkFor}
		}
		state, err := json.Marshal(w)
		if err == nil {
			_, err = feed.Append(ctx, walkStream, port.Batch{State: state})
		}
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("cannot store the state of the walk: %w", err))...)
		}
	}
	return errors.Join(failed...)
}
