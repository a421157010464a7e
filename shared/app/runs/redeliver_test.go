package runs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestNotificationIsSentAgain sends a notification again whose receiver was down for a day. While it is
// being sent, a further request sends nothing.
func TestNotificationIsSentAgain(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *config) { c.Policy.Retry.MaxAttempts, c.Policy.RecordRetention = 1, 7*24*time.Hour })
	h.runJob("a", spec.Constraints{}, spec.Actions{OnFailure: &informing})
	h.hooks.down = true
	h.exit("a", 1)
	h.wantState("a", run.Failed)
	redeliver := func(who port.Identity, action spec.EndAction) (run.Run, error) {
		return h.service.Redeliveries.Redeliver(h.Context(), who, "a", action)
	}
	giveUp := func() {
		t.Helper()
		for range 150 {
			h.advance(10 * time.Minute)
			h.sweep()
		}
		failed := h.record("a").FailedActions
		if len(failed) != 1 || failed[0].Action != spec.OnFailure || !strings.Contains(failed[0].Answer, "given up after 24 hours") || h.record("a").Sends(spec.OnFailure) {
			t.Fatalf("got the failures %+v, want that of onFailure", failed)
		}
	}
	if r, err := redeliver(client, ""); err != nil || len(r.FailedActions) != 0 || !r.Sends(spec.OnFailure) {
		t.Fatalf("got %+v and %v before the end of the tries, want the action that is sent", r.FailedActions, err)
	}
	giveUp()
	if _, err := redeliver(port.Identity{Tenant: "other"}, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v for another tenant, want NOT_FOUND", err)
	}
	if _, err := redeliver(client, spec.OnSuccess); !fault.Is(err, fault.InvalidRequest) || fault.Of(err).Field != "action" {
		t.Errorf("got %v for another action, want a fault of the field action", err)
	}
	_, err := redeliver(client, spec.OnFailure) // the receiver is still down
	h.ok(err)
	r := h.record("a")
	again, err := redeliver(client, "")
	h.ok(err)
	if again.Version != r.Version || !again.Sends(spec.OnFailure) || len(again.Execution.Pending) != 1 || len(again.FailedActions) != 1 {
		t.Errorf("got version %d and pending %+v, want version %d and one action", again.Version, again.Execution.Pending, r.Version)
	}
	giveUp()
	h.hooks.down = false
	_, err = redeliver(client, "")
	h.ok(err)
	for range 3 {
		h.advance(10 * time.Minute)
		h.sweep()
	}
	if r := h.record("a"); !slices.Equal(h.hooks.notified, []string{"a onFailure"}) || len(r.FailedActions) != 0 || len(r.Execution.Pending) != 0 || !r.Execution.ActBy.IsZero() {
		t.Errorf("got webhooks %v, failures %+v and pending %+v, want one webhook", h.hooks.notified, r.FailedActions, r.Execution.Pending)
	}
	if r, err := redeliver(client, ""); err != nil || r.Sends(spec.OnFailure) {
		t.Errorf("got %v and pending %+v after the delivery, want nothing to send", err, r.Execution.Pending)
	}
	if _, err = redeliver(client, spec.OnFailure); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("got %v after the delivery, want INVALID_REQUEST", err)
	}
}
