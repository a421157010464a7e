package orchestrator

import (
	"context"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
)

// The pauses before a busy replica is asked again: the first one, and the longest.
const (
	busyPause     = 50 * time.Millisecond
	busyPauseMost = time.Second
)

// untilFree asks a replica until it does not refuse the request because it is busy, or the
// deadline is over: an engine may take fewer requests than its pool has slots. A task whose pool
// has another replica is not held up, its next attempt goes there.
func (s *Dispatcher) untilFree(ctx context.Context, t *serving, ask func(context.Context) error) error {
	for pause := busyPause; ; pause = min(2*pause, busyPauseMost) {
		t.used.AskedAt = s.now()
		busy := ask(ctx)
		if !fault.Is(busy, fault.ReplicaExhausted) || !t.replica.alone() {
			return busy
		}
		if pause == busyPause {
			attrs := append(attrsOf(t.run), slog.String("replica", t.replica.id))
			s.log.LogAttrs(ctx, slog.LevelInfo, "the engine is busy and is asked again until the deadline of the task", attrs...)
		}
		over, stop := s.clock.NewTimer(min(pause, t.run.AnswerBy().Sub(s.now())))
		select {
		case <-over:
		case <-ctx.Done():
			stop()
			return busy
		}
		var err error
		if ask, err = s.question(t); err != nil {
			return err
		}
	}
}
