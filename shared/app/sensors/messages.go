package sensors

import (
	"context"

	"github.com/sortie-dev/sortie/shared/base/batch"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

// takeMessages receives messages until the queue has none, and starts their runs. It deletes a
// message when its run is stored. A message that can have no run stays in the queue, whose redrive
// policy moves it to a dead-letter queue.
func (s *Polls) takeMessages(ctx context.Context, j job.Job, by sensor.Credentials, m *memory) (more bool, err error) {
	of := *j.Definition.Sensor.Queue
	for turn := range startLimit / port.MaxMessages {
		messages, err := s.queues.Messages(ctx, of, by)
		if err != nil && turn > 0 && ctx.Err() != nil { // the time of the poll is over
			return true, nil //nolint:nilerr // the next poll continues
		}
		if err != nil || len(messages) == 0 {
			return false, err
		}
		taken, first := s.startMessages(ctx, j, of, messages, m)
		if len(taken) > 0 {
			if err := s.queues.DeleteMessages(ctx, of, by, taken); err != nil {
				return false, err
			}
		}
		if first != nil {
			return false, first
		}
	}
	return true, nil
}

// startMessages starts the runs of messages. It returns the messages that have one, and an error of
// the others.
func (s *Polls) startMessages(ctx context.Context, j job.Job, of sensor.Queue, messages []sensor.Message, m *memory) (taken []sensor.Message, first error) {
	refused := make([]string, len(messages))
	failed := batch.Each(s.workers, batch.Indexes(len(messages)), func(i int) (err error) {
		e, malformed := messages[i].Event(of)
		refused[i], err = s.start(ctx, j, e, malformed)
		return err
	})
	for i, message := range messages {
		switch {
		case failed[i] != nil:
			first = failed[i]
		case refused[i] != "":
			s.refuse(ctx, j, m, message.ID, refused[i])
		default:
			taken = append(taken, message)
		}
	}
	return taken, first
}
