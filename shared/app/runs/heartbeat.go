package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// HeartbeatResult is the result of a heartbeat.
type HeartbeatResult struct {
	// At is the time at which the heartbeat was received.
	At time.Time
	// Cancel is the reason of the cancel request, or nil.
	Cancel *string
	// Renewed replaces the worker's grant if its token has less than half of its
	// life left; nil otherwise.
	Renewed *grants.Grant
}

// Heartbeat records a worker's heartbeat. Usually that is one conditional write beside the run.
// It ignores the worker's clock. progress is in percent and is clamped to 0 to 100; nil and an
// empty message keep the previous values.
func (s *Workers) Heartbeat(ctx context.Context, bearer token.Bearer, by Caller, progress *int, message string) (HeartbeatResult, error) {
	alive := HeartbeatResult{At: s.now()}
	heartbeat := run.Heartbeat{
		Attempt: by.Attempt, WorkerID: by.WorkerID, At: alive.At, Message: limit.Cut(message, limit.Message), Received: 1,
	}
	if progress != nil {
		heartbeat.Progress = new(min(max(*progress, 0), 100))
	}
	recorded, err := s.recordHeartbeat(ctx, bearer, by, heartbeat)
	if err != nil {
		if fault.Is(err, fault.InvalidRequest) || fault.Is(err, fault.AttemptMismatch) {
			s.SignOfLife(ctx, bearer)
		}
		return alive, err
	}
	if alive.Cancel = recorded.Cancel; alive.Cancel != nil {
		r, err := s.store.Load(ctx, refOf(bearer.Claims))
		if err != nil {
			return alive, fmt.Errorf("cannot load the run: %w", err)
		}
		s.markCancelDelivered(ctx, r, by.Attempt)
	}
	alive.Renewed, err = s.grants.Renewal(ctx, bearer)
	if err != nil {
		// The old token is still valid, and the next heartbeat retries.
		s.warnOf(ctx, bearer, "cannot renew a worker's token", err)
	}
	return alive, nil
}

// SignOfLife records a heartbeat whose body was refused: its token proves that the worker of
// the attempt is alive. It does nothing before the first accepted call of that worker, because
// no heartbeat limit applies until then.
func (s *Workers) SignOfLife(ctx context.Context, bearer token.Bearer) {
	ref := refOf(bearer.Claims)
	last, err := s.store.LastHeartbeat(ctx, ref)
	if err == nil && last.Attempt == bearer.Attempt {
		_, err = s.writeHeartbeat(ctx, bearer, run.Heartbeat{Attempt: last.Attempt, WorkerID: last.WorkerID, At: s.now()})
	}
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		s.warnOf(ctx, bearer, "cannot record a refused heartbeat as a sign of life", err)
	}
}

// recordHeartbeat writes the open heartbeat item. It reads the run only if the token was not
// compared with the run before, or without an open item.
func (s *Workers) recordHeartbeat(ctx context.Context, bearer token.Bearer, by Caller, heartbeat run.Heartbeat) (run.Heartbeat, error) {
	if bearer.Matched() && by.check() == nil && by.Attempt == bearer.Attempt {
		recorded, err := s.writeHeartbeat(ctx, bearer, heartbeat)
		if !errors.Is(err, port.ErrNotFound) {
			return recorded, err
		}
	}
	r, err := s.runOf(ctx, bearer, by)
	if err != nil {
		return run.Heartbeat{}, err
	}
	return s.heartbeat(ctx, bearer, r, heartbeat)
}

// heartbeat writes the open heartbeat item of a run that was just read. Without an open item it
// commits the contact, which opens one, or returns the fault of the refusal.
func (s *Workers) heartbeat(ctx context.Context, bearer token.Bearer, r run.Run, heartbeat run.Heartbeat) (run.Heartbeat, error) {
	recorded, err := s.writeHeartbeat(ctx, bearer, heartbeat)
	if !errors.Is(err, port.ErrNotFound) {
		return recorded, err
	}
	after, err := s.applyTo(ctx, r, func(now run.Run) run.Fact {
		return run.WorkerContacted{
			Attempt: heartbeat.Attempt, WorkerID: heartbeat.WorkerID, Progress: heartbeat.Progress, Message: heartbeat.Message,
			Missing: now.Attempt.WorkerID == heartbeat.WorkerID,
		}
	})
	if err != nil {
		return run.Heartbeat{}, s.refused(ctx, after, heartbeat.Attempt, err, "commit the heartbeat")
	}
	return s.writeHeartbeat(ctx, bearer, heartbeat)
}

// writeHeartbeat writes the heartbeat item. As often as the heartbeat limit requires, it also
// forwards the heartbeat to the execution. If that fails, the run is only reconciled earlier.
func (s *Workers) writeHeartbeat(ctx context.Context, bearer token.Bearer, heartbeat run.Heartbeat) (run.Heartbeat, error) {
	recorded, err := s.store.Heartbeat(ctx, refOf(bearer.Claims), heartbeat)
	if errors.Is(err, port.ErrNotFound) {
		return recorded, err
	}
	if err != nil {
		return recorded, fmt.Errorf("cannot record the heartbeat: %w", err)
	}
	if s.log.Enabled(ctx, slog.LevelDebug) {
		s.log.LogAttrs(ctx, slog.LevelDebug, "heartbeat", append(about.Worker(bearer), slog.Int("received", recorded.Received))...)
	}
	if !recorded.Forward() {
		return recorded, nil
	}
	err = s.inBudget(ctx, func(ctx context.Context) error { return s.executions.Heartbeat(ctx, recorded.Token) })
	if err != nil && !errors.Is(err, port.ErrTokenGone) {
		s.warnOf(ctx, bearer, "cannot forward a heartbeat to the execution", err)
	}
	return recorded, nil
}

func (s *Workers) warnOf(ctx context.Context, bearer token.Bearer, message string, err error) {
	s.log.LogAttrs(ctx, slog.LevelWarn, message, append(about.Worker(bearer), slog.String("error", err.Error()))...)
}
