package runs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

const skipActions = `actions:
  onSkip: {type: webhook, parameters: {url: "https://example.org/alert"}}
  onSuccess: {type: webhook, parameters: {url: "https://example.org/alert"}}
  onFailure: {type: webhook, parameters: {url: "https://example.org/alert"}}
`

// skips are the ways in which a run is skipped. Each returns the job, which has exactly one
// skipped run then.
var skips = map[string]func(h *fixture) job.Ref{
	"a constraint": func(h *fixture) job.Ref {
		ref := h.createJob("one", "constraints: {maxConcurrentRuns: 1}\n"+skipActions)
		h.requested(ref, spec.Override{})
		h.requested(ref, spec.Override{})
		return ref
	},
	"a hook that cannot be reached": func(h *fixture) job.Ref {
		h.hooks.answers = map[string]spec.HookAnswer{"https://example.org/hook": {Unavailable: true, Detail: "no route"}}
		ref := h.createJob("one", "constraints: {preRunHook: {url: \"https://example.org/hook\"}}\n"+skipActions)
		h.requested(ref, spec.Override{})
		return ref
	},
	"a run that joins a full key": func(h *fixture) job.Ref {
		ref := h.createJob("one", "concurrencyKey: shop\nconcurrency: {queueLimit: 1, overflow: keep_oldest}\n"+skipActions)
		for range 3 {
			h.requested(ref, spec.Override{})
		}
		return ref
	},
	"a run that a newer one replaces": func(h *fixture) job.Ref {
		ref := h.createJob("one", "concurrencyKey: shop\nconcurrency: {queueLimit: 1, overflow: keep_newest}\n"+skipActions)
		for range 3 {
			h.requested(ref, spec.Override{})
		}
		return ref
	},
	"a firing that finds a full key": func(h *fixture) job.Ref {
		ref := h.createJob("one", "schedule: \"@every 1h\"\nconcurrencyKey: shop\nconcurrency: {queueLimit: 1}\n"+skipActions)
		for range 3 {
			h.wake(ref)
		}
		return ref
	},
	"a run whose upstream failed": func(h *fixture) job.Ref {
		h.putJobs("before\n")
		owner := client
		owner.Scopes = access.Scopes()
		_, _, err := h.service.Jobs.Put(h.Context(), owner, "one", []byte("image: worker\nafter: [{job: before, when: failure}]\n"+skipActions), change.Precondition{})
		h.ok(err)
		h.ends(h.requested(job.Ref{Tenant: client.Tenant, ID: "before"}, spec.Override{}))
		return job.Ref{Tenant: client.Tenant, ID: "one"}
	},
	"missed firings": func(h *fixture) job.Ref {
		ref := h.createJob("one", "schedule: \"@every 1h\"\n"+skipActions)
		h.clock.to(epoch.Add(5*time.Hour + 30*time.Minute))
		h.fire(ref)
		return ref
	},
	"a pool that was deleted": func(h *fixture) job.Ref {
		ref := h.createJob("one", "schedule: \"@every 1h\"\npool: gone\n"+skipActions)
		h.wake(ref)
		return ref
	},
}

// TestSkipHasAnEventAndAnActionOfItsOwn skips a run in each way. The first tries of its action
// are lost. Neither onSuccess nor onFailure is carried out.
func TestSkipHasAnEventAndAnActionOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, skip := range skips {
		for _, lost := range []int{0, 2} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h := setup(t, manyMachines)
				h.hooks.unknown = lost
				ref := skip(h)
				for range 4 * lost {
					h.advance(time.Minute)
					_ = h.service.Sweep(h.Context(), 0)
					h.step()
				}
				r := h.skippedRun(ref)
				of := slices.DeleteFunc(h.hooks.notified, func(call string) bool { return !strings.HasPrefix(call, r.ID+" ") })
				if got := strings.Join(of, ","); got != r.ID+" onSkip" {
					t.Errorf("got webhooks %q of the skipped run, want onSkip once", got)
				}
				if h.hooks.limited && lost == 0 && r.Graph != nil {
					t.Error("got a limited time for a webhook that delays no request")
				}
				if len(r.Execution.Pending) != 0 || !r.Execution.ActBy.IsZero() {
					t.Errorf("got %+v, want nothing pending", r.Execution)
				}
				events, err := h.store.Events(h.Context(), r.Ref(), 0, 1000)
				h.ok(err)
				ends := slices.DeleteFunc(slices.Clone(events), func(e run.Event) bool { return e.Type != run.EventSkipped && e.Type != run.EventCompleted })
				if last := events[len(events)-1]; len(ends) != 1 || ends[0].Type != run.EventSkipped || last.Type != run.EventActionExecuted {
					t.Errorf("got ends %+v and the last event %+v, want one job.skipped and the executed action", ends, last)
				}
			})
		}
	}
}

// TestSkippedRunTriggersAnotherInTheSameRequest skips a run in a request whose effects have one
// budget. Its action creates a run, whose commit has effects in the same request.
func TestSkippedRunTriggersAnotherInTheSameRequest(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	other := h.createJob("other", "")
	ref := h.createJob("one", "concurrencyKey: shop\nconcurrency: {queueLimit: 1, overflow: keep_oldest}\nactions:\n"+
		"  onSkip: {type: trigger_job, parameters: {jobId: other}}\n")
	for range 3 {
		h.clock.to(h.clock.now.Add(time.Second))
		_, _, err := h.service.Jobs.RunJob(runs.WithRequest(h.Context(), "c"), jobs.RunRequest{Identity: client, JobID: ref.ID, CorrelationID: "c"})
		h.ok(err)
	}
	h.skippedRun(ref)
	triggered, _, err := h.store.List(h.Context(), other.Tenant, port.Page{JobID: other.ID, Limit: 10})
	h.ok(err)
	if len(triggered) != 1 {
		t.Errorf("got runs %+v of the other job, want one that the skip has triggered", triggered)
	}
}

// skippedRun returns the skipped run of a job.
func (h *fixture) skippedRun(ref job.Ref) run.Run {
	h.Helper()
	runs, _, err := h.store.List(h.Context(), ref.Tenant, port.Page{JobID: ref.ID, Limit: 1000})
	h.ok(err)
	runs = slices.DeleteFunc(runs, func(r run.Run) bool { return !r.Skipped })
	if len(runs) != 1 || runs[0].State != run.Completed {
		h.Fatalf("got %d skipped runs %+v, want one that is Completed", len(runs), runs)
	}
	return runs[0]
}
