package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// sendHeartbeats sends heartbeats until Close, or until the control plane ends
// the task.
func (t *Task) sendHeartbeats() {
	next, failures := t.pace.interval, 0
	for {
		timer, stop := t.options.Clock.NewTimer(next)
		select {
		case <-t.life.Done():
			stop()
			return
		case <-t.ask:
			stop()
		case <-timer:
		}
		asking := t.terminated()
		begun := t.options.Clock.Now()
		err := t.heartbeat(t.life)
		switch failed := (*again)(nil); {
		case t.life.Err() != nil:
			return
		case err == nil:
			failures, next = 0, t.pace.interval-t.options.Clock.Now().Sub(begun)
			if asking {
				t.answered()
			}
		case silent(err) || errors.Is(err, ErrCancelled):
			t.cancel(err)
			t.answered()
			return
		case errors.As(err, &failed):
			t.options.Log.WarnContext(t.life, "heartbeat failed, trying again", "why", err.Error())
			next = min(max(pause(failures, t.firstPause(), t.pace.interval, t.options.Jitter()), failed.after), t.pace.interval)
			failures++
		default:
			t.options.Log.WarnContext(t.life, "heartbeat was refused", "why", err.Error())
			next = t.pace.interval
		}
	}
}

// firstPause is shorter where heartbeats are.
func (t *Task) firstPause() time.Duration { return min(firstPause, t.pace.interval/8) }

// answered notes that the control plane was heard after SIGTERM.
func (t *Task) answered() {
	select {
	case <-t.heard:
	default:
		close(t.heard)
	}
}

// heartbeat sends one and takes what its answer says. The error is an *again, a
// cause, or a refusal.
func (t *Task) heartbeat(ctx context.Context) error {
	t.mu.Lock()
	now := t.told
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
	if cause := verdict(a); cause != nil {
		return cause
	}
	if !a.ok() {
		return a.err()
	}
	var said contract.HeartbeatAnswer
	if json.Unmarshal(a.body, &said) != nil {
		return &again{err: errors.New("the answer is not the contract's")}
	}
	t.renew(said.TokenRenewal)
	if said.ShouldCancel {
		t.mu.Lock()
		t.wished = true
		t.mu.Unlock()
		t.cancel(wish(said.CancelReason))
	}
	return nil
}

// wish is the cause of a cancel, with its reason.
func wish(reason string) error {
	if reason == "" {
		return ErrCancelled
	}
	return fmt.Errorf("%w: %s", ErrCancelled, cut(reason, maxMessage))
}

// renew takes what is newer than what there was.
func (t *Task) renew(r contract.TokenRenewal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if taskToken.MatchString(r.TaskToken) {
		t.link.TaskToken, t.link.TokenExpiresAt = r.TaskToken, r.TokenExpiresAt
	}
	if r.Output != nil && isAddress(r.Output.URL) {
		t.link.Output = r.Output
	}
	if r.Log != nil && isAddress(r.Log.URL) {
		t.link.Log = r.Log
	}
}
