package inferences

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// The first and the longest pause before the request to a busy replica is retried.
const (
	busyPause     = 50 * time.Millisecond
	busyPauseMost = time.Second
)

// retryWhileBusy sends a request to a replica, and retries while the replica is busy, until the
// deadline of the task. An engine may take fewer requests than its pool has slots. If the pool
// has another replica, or the task another pool, it does not retry: the next attempt goes there. A
// pause that the engine requests is kept, and its replica gets no other tasks meanwhile.
func (s *answering) retryWhileBusy(ctx context.Context, t *serving, ask func(context.Context) error) error {
	for pause := busyPause; ; pause = min(2*pause, busyPauseMost) {
		t.used.RequestedAt = s.now()
		busy := ask(ctx)
		asked := t.replica.Cool(busy)
		if !fault.Is(busy, fault.ReplicaExhausted) || !t.replica.IsLastActive() {
			return busy
		}
		if leaves, err := s.hasFallback(ctx, t.run); leaves || err != nil {
			return errors.Join(err, busy)
		}
		if pause == busyPause {
			attrs := append(about.Run(&t.run), slog.String("replica", t.replica.ID()))
			s.log.LogAttrs(ctx, slog.LevelInfo, "the engine is busy and is asked again until the deadline of the task", attrs...)
		}
		over, stop := s.clock.NewTimer(min(max(pause, asked), t.run.AnswerBy().Sub(s.now())))
		select {
		case <-over:
		case <-ctx.Done():
			stop()
			return busy
		}
		var err error
		if ask, err = s.requestOf(ctx, t); err != nil {
			return err
		}
	}
}
