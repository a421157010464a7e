package runs_test

import (
	"context"

	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// hooks returns the results of the hooks of jobs, by URL.
type hooks struct {
	answers map[string]spec.HookAnswer
	// failures has the failures of webhooks. unknown is the number of calls that return an
	// error before the next result.
	failures map[string]string
	// down: each webhook returns Untaken.
	down    bool
	unknown int
	// asked and notified list the calls as "RUN REASON".
	asked, notified []string
	// limited: the context of the last webhook had a deadline.
	limited bool
	// asking runs during each call of Ask; nil does nothing.
	asking func()
	// notifying runs during each call of Notify; nil does nothing.
	notifying func()
	// untaken runs during each call of Notify, which then returns Untaken; nil does nothing.
	untaken func()
}

func (h *hooks) err() error {
	if h.unknown > 0 {
		h.unknown--
		return fault.New(fault.Unavailable, "the secret cannot be read")
	}
	return nil
}

// Ask implements runs.Hooks.
func (h *hooks) Ask(_ context.Context, r run.Run, to spec.Hook, of spec.Constraint) (spec.HookAnswer, error) {
	if err := h.err(); err != nil {
		return spec.HookAnswer{}, err
	}
	h.asked = append(h.asked, r.ID+" "+string(of))
	if h.asking != nil {
		h.asking()
	}
	return h.answers[to.URL], nil
}

// Notify implements runs.Hooks.
func (h *hooks) Notify(ctx context.Context, r run.Run, to spec.Hook, reason string) (answer, failure string, err error) {
	if err := h.err(); err != nil {
		return "", "", err
	}
	if h.down {
		return "", "", &hook.Untaken{Detail: "answered 503"}
	}
	_, h.limited = ctx.Deadline()
	h.notified = append(h.notified, r.ID+" "+reason)
	if h.notifying != nil {
		h.notifying()
	}
	if h.untaken != nil {
		h.untaken()
		return "", "", &hook.Untaken{Detail: "no answer"}
	}
	return "answered 204 No Content", h.failures[to.URL], nil
}
