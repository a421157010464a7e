package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// progressInterval is the shortest time between a call and the heartbeat that reports a change
// of the progress.
const progressInterval = time.Second

// progress is the part of a heartbeat that the work sets.
type progress struct {
	percent int // -1 if unknown
	message string
}

// sendHeartbeats sends heartbeats until Close, or until an answer ends the task.
func (t *Task) sendHeartbeats() {
	failures := 0
	sent := t.options.Clock.Now() // of started
	due := sent.Add(t.timing.interval)
	for {
		timer, stop := t.options.Clock.NewTimer(due.Sub(t.options.Clock.Now()))
		select {
		case <-t.background.Done():
			stop()
			return
		case <-t.progressed:
			stop()
			if at := sent.Add(progressInterval); failures == 0 && t.hasNewProgress() && at.Before(due) {
				due = at
			}
			continue
		case <-t.heartbeatNow:
			stop()
		case <-timer:
		}
		terminated := t.terminated()
		sent = t.options.Clock.Now()
		err := t.heartbeat(t.background)
		delay := t.timing.interval
		switch failed := (*retryableError)(nil); {
		case t.background.Err() != nil:
			return
		case err == nil:
			failures, delay = 0, t.timing.interval-t.options.Clock.Now().Sub(sent)
			if terminated {
				t.markAnswered()
			}
			t.signalProgress() // it may have changed during the call
		case abandoned(err) || errors.Is(err, ErrCancelled):
			t.cancel(err)
			t.markAnswered()
			return
		case errors.As(err, &failed):
			t.options.Log.WarnContext(t.background, "heartbeat failed, retrying", "why", err.Error())
			delay = min(max(backoff(failures, t.firstHeartbeatDelay(), t.timing.interval, t.options.Jitter()), failed.after), t.timing.interval)
			failures++
		default:
			t.options.Log.WarnContext(t.background, "heartbeat was refused", "why", err.Error())
			failures++
		}
		due = t.options.Clock.Now().Add(delay)
	}
}

// firstHeartbeatDelay is the first delay between retries of a heartbeat, shorter
// for short intervals.
func (t *Task) firstHeartbeatDelay() time.Duration { return min(firstDelay, t.timing.interval/8) }

// markAnswered records that the control plane has responded after SIGTERM.
func (t *Task) markAnswered() {
	select {
	case <-t.answered:
	default:
		close(t.answered)
	}
}

// signalProgress makes sendHeartbeats check the progress.
func (t *Task) signalProgress() {
	select {
	case t.progressed <- struct{}{}:
	default:
	}
}

// hasNewProgress reports whether the progress differs from that of the last delivered
// heartbeat.
func (t *Task) hasNewProgress() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.progress != t.delivered
}

// heartbeat sends one heartbeat and applies the response. The error is a *retryableError, a
// cause, or a refusal.
func (t *Task) heartbeat(ctx context.Context) error {
	t.mu.Lock()
	now := t.progress
	t.mu.Unlock()
	body := contract.TaskHeartbeat{
		Attempt: t.assignment.Envelope.Attempt, WorkerID: t.options.WorkerID,
		HeartbeatAt: t.options.Clock.Now().UTC(), Message: cut(now.message, maxMessage),
	}
	if now.percent >= 0 {
		body.ProgressPct = &now.percent
	}
	a, err := t.call(ctx, "heartbeat", body)
	if err != nil {
		return err
	}
	if cause := causeOf(a); cause != nil {
		return cause
	}
	if !a.ok() {
		return a.err()
	}
	var said contract.HeartbeatAnswer
	if json.Unmarshal(a.body, &said) != nil {
		return &retryableError{err: errors.New("malformed answer")}
	}
	t.renew(said.TokenRenewal)
	t.mu.Lock()
	t.delivered = now
	t.cancelRequested = t.cancelRequested || said.ShouldCancel
	t.mu.Unlock()
	if said.ShouldCancel {
		t.cancel(cancelCause(said.CancelReason))
	}
	return nil
}

// cancelCause returns ErrCancelled, wrapped with the reason if there is one.
func cancelCause(reason string) error {
	if reason == "" {
		return ErrCancelled
	}
	return fmt.Errorf("%w: %s", ErrCancelled, cut(reason, maxMessage))
}

// renew replaces the token and the URLs with newer ones that are valid.
func (t *Task) renew(r contract.TokenRenewal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if isToken(r.TaskToken) {
		t.grant.TaskToken, t.grant.TokenExpiresAt = r.TaskToken, r.TokenExpiresAt
	}
	if r.Output != nil && isURL(r.Output.URL) {
		t.grant.Output = r.Output
	}
	if r.Log != nil && isURL(r.Log.URL) {
		t.grant.Log = r.Log
	}
}
