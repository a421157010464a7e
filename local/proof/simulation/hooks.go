package simulation

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/run"
)

// The addresses of hooks. Each answers in its own way.
const (
	hookAllows  = "https://hooks.example.org/allow"
	hookRefuses = "https://hooks.example.org/refuse"
	hookFails   = "https://hooks.example.org/fail"
	hookHangs   = "https://hooks.example.org/hang"
	hookVaries  = "https://hooks.example.org/vary"
)

// hookTime is how long the tries of a hook take at most.
const hookTime = 35 * time.Second

// hooks are the receivers at the addresses of jobs.
type hooks struct {
	w *world
	// accepted counts the accepted messages and refused the others, each by the id
	// of the message.
	accepted, refused map[string]int
}

func newHooks(w *world) *hooks {
	return &hooks{w: w, accepted: map[string]int{}, refused: map[string]int{}}
}

// messageID is the id of the message about a run for a reason.
func messageID(r *run.Run, reason string) string { return r.TaskID + "-" + reason }

// answer lets the address answer. The caller can crash before and after that.
func (h *hooks) answer(ctx context.Context, url string) (a run.HookAnswer, err error) {
	w := h.w
	w.maybeCrash()
	w.maybeInterrupt()
	if url == hookVaries {
		url = []string{hookAllows, hookRefuses, hookFails, hookHangs}[w.random.IntN(4)]
	}
	if url == hookHangs {
		w.time.sleep(hookTime - 5*time.Second)
	} else {
		w.time.sleep(w.upTo(3 * time.Second))
	}
	if ctx.Err() != nil {
		return a, fault.New(fault.Unavailable, "the call was interrupted")
	}
	switch url {
	case hookAllows:
		a.Allowed = true
	case hookRefuses:
		a.Detail = "refused"
	default:
		a.Unavailable, a.Detail = true, "no answer"
	}
	return a, nil
}

// Ask implements orchestrator.Hooks.
func (h *hooks) Ask(ctx context.Context, _ run.Run, of run.Hook, _ run.Constraint) (run.HookAnswer, error) {
	a, err := h.answer(ctx, of.URL)
	h.w.maybeCrash()
	return a, err
}

// Notify implements orchestrator.Hooks.
func (h *hooks) Notify(ctx context.Context, r run.Run, of run.Hook, reason string) (answer, failure string, err error) {
	a, err := h.answer(ctx, of.URL)
	if err != nil {
		return "", "", err
	}
	id := messageID(&r, reason)
	if !a.Allowed {
		h.refused[id]++
		return "", "the receiver did not take it: " + a.Detail, nil
	}
	h.accepted[id]++
	h.w.maybeCrash()
	return "accepted", "", nil
}
