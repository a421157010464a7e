package runs

import (
	"context"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// ExpiredStreams says who deletes the expired records of the streams of inference tasks: a
// sweep, with TrimStreams, or the database, with LeaveToDatabase.
type ExpiredStreams interface {
	feed() (feed port.Feed, ok bool)
}

// TrimStreams makes sweeps delete the expired records of the streams in a feed.
func TrimStreams(feed port.Feed) ExpiredStreams { return trimStreams{feed} }

type trimStreams struct{ port.Feed }

func (s trimStreams) feed() (port.Feed, bool) { return s.Feed, true }

// LeaveToDatabase leaves the expired records of streams to the database, which deletes them by
// itself, or to another process.
type LeaveToDatabase struct{}

func (LeaveToDatabase) feed() (port.Feed, bool) { return nil, false }

// sweepAnswers deletes the expired records of the streams of inference tasks. It reads only
// streams of tasks that were accepted longer ago than the record retention: only these can have
// expired as a whole.
func (s *Sweeper) sweepAnswers(ctx context.Context) error {
	feed, ok := s.streams.feed()
	if !ok {
		return nil
	}
	return s.parts.UnlessResting("answers", func() (found int, err error) {
		before := s.now().Add(-s.policy.RecordRetention)
		err = port.WalkStreams(ctx, feed, inference.StreamPrefix, func(task string) error {
			stream := inference.StreamPrefix + task
			if at, ok := inference.Accepted(stream); !ok || at.After(before) {
				return nil
			}
			trimmed, err := port.TrimStream(ctx, feed, stream)
			found += trimmed
			return err
		})
		return found, err
	})
}
