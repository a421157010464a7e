package simulation

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// The addresses of hooks, one for each behaviour.
const (
	hookAllows  = "https://hooks.example.org/allow"
	hookRefuses = "https://hooks.example.org/refuse"
	hookFails   = "https://hooks.example.org/fail"
	hookHangs   = "https://hooks.example.org/hang"
	hookVaries  = "https://hooks.example.org/vary"
	// hookFreezes alternates between refusing and allowing everything.
	hookFreezes = "https://hooks.example.org/freeze"
)

// freezes is the length of each phase of hookFreezes.
const freezes = 20 * time.Second

// hookTime limits the time of all tries of a hook.
const hookTime = 35 * time.Second

// hooks are the hook receivers of jobs.
type hooks struct {
	w *base
	// accepted and refused count the messages by message id.
	accepted, refused map[string]int
	// allowedAt is the time of the last permission before a run began. awayAt is the time at
	// which the hook was unreachable.
	allowedAt, awayAt map[string]time.Time
}

func newHooks(w *base) *hooks {
	return &hooks{w: w, accepted: map[string]int{}, refused: map[string]int{}, allowedAt: map[string]time.Time{}, awayAt: map[string]time.Time{}}
}

// messageID returns the id of the message about a run for a reason.
func messageID(r *run.Run, reason string) string { return r.TaskID + "-" + reason }

// answer returns the answer of the address. The caller can crash before and after it.
func (h *hooks) answer(ctx context.Context, url string) (a run.HookAnswer, err error) {
	w := h.w
	w.maybeCrash()
	w.maybeInterrupt()
	if url == hookVaries {
		url = []string{hookAllows, hookRefuses, hookFails, hookHangs}[w.random.IntN(4)]
	}
	if url == hookFreezes {
		if url = hookAllows; w.time.now.Sub(start)/freezes%2 == 0 {
			url = hookRefuses
		}
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

// Ask implements runs.Hooks.
func (h *hooks) Ask(ctx context.Context, r run.Run, of run.Hook, name run.Constraint) (run.HookAnswer, error) {
	if name == run.PreRunHook && r.State != run.ConditionRunning && r.State != run.ActionRunning {
		h.w.fail("the hook before %s is asked in %s", r.ID, r.State)
	}
	a, err := h.answer(ctx, of.URL)
	switch {
	case name != run.PreRunHook || err != nil:
	case a.Allowed:
		h.allowedAt[r.ID] = h.w.time.now
	case a.Unavailable:
		h.awayAt[r.ID] = h.w.time.now
	}
	h.w.maybeCrash()
	return a, err
}

// Notify implements runs.Hooks.
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
