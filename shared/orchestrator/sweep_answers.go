package orchestrator

import (
	"context"

	"github.com/sortie-dev/sortie/shared/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// sweepAnswers deletes the expired records of the streams of inference tasks. It reads only
// streams of tasks that were accepted longer ago than the record retention: only these can have
// expired as a whole.
func (s *Sweeper) sweepAnswers(ctx context.Context) error {
	if s.answers == nil {
		return nil
	}
	feed, ok := s.answers.feed.(port.Feed)
	if !ok {
		return nil // the database deletes expired records
	}
	return s.unlessResting("answers", func() (found int, err error) {
		before := s.now().Add(-s.policy.RecordRetention)
		err = eachStream(ctx, feed, inference.StreamPrefix, func(task string) error {
			stream := inference.StreamPrefix + task
			if at, ok := inference.Accepted(stream); !ok || at.After(before) {
				return nil
			}
			for {
				trimmed, err := feed.Trim(ctx, stream, trimPage)
				found += trimmed
				if err != nil || trimmed < trimPage {
					return err
				}
			}
		})
		return found, err
	})
}
