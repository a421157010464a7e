package runs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestRetryWaitsForNoReceiver retries a run whose receiver never answers: each call takes half a
// minute, and nothing takes it. The sweep makes the calls, beside the retry.
func TestRetryWaitsForNoReceiver(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.runJob("a", spec.Constraints{}, spec.Actions{OnRetry: &informing})
	h.wantState("a", run.Running)
	h.hooks.untaken = func() { h.clock.now = h.clock.now.Add(30 * time.Second) }
	began := h.clock.now
	h.exit("a", 1)
	r := h.wantState("a", run.Retrying)
	if r.RetryAt.Before(began) || len(h.hooks.notified) != 0 || !h.clock.now.Equal(began) {
		t.Fatalf("got calls %v and %v later, want a retry that waited for no call", h.hooks.notified, h.clock.now.Sub(began))
	}
	if !h.service.EffectFailed() {
		t.Error("got no hint that the next sweep has an action, want one")
	}
	h.advance(r.RetryAt.Sub(h.clock.now))
	if r := h.wantState("a", run.Running); r.Attempt.Number != 2 || len(h.hooks.notified) != 0 {
		t.Fatalf("got attempt %d and calls %v, want the second attempt without a call", r.Attempt.Number, h.hooks.notified)
	}
	h.ok(h.service.Sweep(h.Context(), run.EffectSlack))
	if want := []string{"a onRetry#1"}; !slices.Equal(h.hooks.notified, want) || len(h.record("a").UntakenActions()) != 1 {
		t.Errorf("got calls %v and %+v, want %v, which is repeated", h.hooks.notified, h.record("a").UntakenActions(), want)
	}
	h.exit("a", 0)
	h.wantState("a", run.Completed)
	h.hooks.untaken, h.hooks.notified = nil, nil
	for range 3 {
		h.advance(10 * time.Minute)
		h.sweep()
	}
	if want := []string{"a onRetry#1"}; !slices.Equal(h.hooks.notified, want) || len(h.record("a").Execution.Pending) != 0 {
		t.Errorf("got calls %v and pending %+v, want %v once it is taken", h.hooks.notified, h.record("a").Execution.Pending, want)
	}
}

// TestReceiverDelaysNoOtherJob ends a run whose receiver takes long: what comes after the run has
// started before the call.
func TestReceiverDelaysNoOtherJob(t *testing.T) {
	t.Parallel()
	h := setup(t)
	owner := client
	owner.Scopes = access.Scopes()
	_, _, err := h.service.Jobs.Put(h.Context(), owner, "extract", []byte(`
image: worker
schedule: "@at 2026-03-01T08:01:00Z"
actions: {onSuccess: {type: webhook, parameters: {url: "https://example.org/done"}}}
`), change.Precondition{})
	h.ok(err)
	h.putJobs("report\nafter: [extract]\n")
	h.wake(job.Ref{Tenant: client.Tenant, ID: "extract"})
	h.hooks.notifying = func() {
		if _, err := h.store.Find(h.Context(), client.Tenant, firstRun("report")); err != nil {
			t.Errorf("got %v while the receiver was called, want the next run", err)
		}
	}
	h.exit(firstRun("extract"), 0)
	if len(h.hooks.notified) != 1 {
		t.Errorf("got calls %v, want one", h.hooks.notified)
	}
}
