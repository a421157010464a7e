package harness

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// The addresses of hooks, one for each behaviour.
const (
	HookAllows  = "https://hooks.example.org/allow"
	HookRefuses = "https://hooks.example.org/refuse"
	HookFails   = "https://hooks.example.org/fail"
	HookHangs   = "https://hooks.example.org/hang"
	HookVaries  = "https://hooks.example.org/vary"
	// HookFreezes alternates between refusing and allowing everything.
	HookFreezes = "https://hooks.example.org/freeze"
)

// freezes is the length of each phase of hookFreezes.
const freezes = 20 * time.Second

// HookTime limits the time of all tries of a hook.
const HookTime = 35 * time.Second

// hooks are the hook receivers of jobs.
type hooks struct {
	W *Base
	// Accepted and refused count the messages by message id.
	Accepted, Refused map[string]int
	// AllowedAt is the time of the last permission before a run began. awayAt is the time at
	// which the hook was unreachable.
	AllowedAt, AwayAt map[string]time.Time
	// Notices are the messages to services, by message id.
	Notices map[string]*Notice
}

func newHooks(w *Base) *hooks {
	return &hooks{W: w, Accepted: map[string]int{}, Refused: map[string]int{}, AllowedAt: map[string]time.Time{}, AwayAt: map[string]time.Time{}, Notices: map[string]*Notice{}}
}

// MessageID returns the id of the message about a run for a reason.
func MessageID(r *run.Run, reason string) string { return r.TaskID + "-" + reason }

// answer returns the answer of the address. The caller can crash before and after it.
func (h *hooks) answer(ctx context.Context, url string) (a spec.HookAnswer, err error) {
	w := h.W
	w.MaybeCrash()
	w.MaybeInterrupt()
	if url == HookVaries {
		url = []string{HookAllows, HookRefuses, HookFails, HookHangs}[w.Random.IntN(4)]
	}
	if url == HookFreezes {
		if url = HookAllows; w.Time.Now.Sub(Start)/freezes%2 == 0 {
			url = HookRefuses
		}
	}
	if url == HookHangs {
		w.Time.Sleep(HookTime - 5*time.Second)
	} else {
		w.Time.Sleep(w.UpTo(3 * time.Second))
	}
	if ctx.Err() != nil {
		return a, fault.New(fault.Unavailable, "the call was interrupted")
	}
	switch url {
	case HookAllows:
		a.Allowed = true
	case HookRefuses:
		a.Detail = "refused"
	default:
		a.Unavailable, a.Detail = true, "no answer"
	}
	return a, nil
}

// Ask implements runs.Hooks.
func (h *hooks) Ask(ctx context.Context, r run.Run, of spec.Hook, name spec.Constraint) (spec.HookAnswer, error) {
	if name == spec.PreRunHook && r.State != run.ConditionRunning && r.State != run.ActionRunning {
		h.W.Fail("the hook before %s is asked in %s", r.ID, r.State)
	}
	a, err := h.answer(ctx, of.URL)
	switch {
	case name != spec.PreRunHook || err != nil:
	case a.Allowed:
		h.AllowedAt[r.ID] = h.W.Time.Now
	case a.Unavailable:
		h.AwayAt[r.ID] = h.W.Time.Now
	}
	h.W.MaybeCrash()
	return a, err
}

// Notify implements runs.Hooks.
func (h *hooks) Notify(ctx context.Context, r run.Run, of spec.Hook, reason string) (answer, failure string, err error) {
	if of.Notice != nil && of.Notice.Service != "" {
		return h.notify(ctx, r, of, reason)
	}
	a, err := h.answer(ctx, of.URL)
	if err != nil {
		return "", "", err
	}
	id := MessageID(&r, reason)
	if !a.Allowed {
		h.Refused[id]++
		return "", "the receiver did not take it: " + a.Detail, nil
	}
	h.Accepted[id]++
	h.W.MaybeCrash()
	return "accepted", "", nil
}
