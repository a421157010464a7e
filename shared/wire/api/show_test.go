package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func view(change func(*run.Run)) runs.View {
	r := run.Run{TaskID: "export_mods_1_00000000", State: run.Pending, Work: spec.Work{Options: json.RawMessage(`{}`), Image: "an-image"}}
	change(&r)
	return runs.View{Run: r, QueuePosition: -1}
}

func TestStatusOfEveryState(t *testing.T) {
	t.Parallel()
	seen := map[string]run.State{}
	for _, state := range run.States() {
		v := view(func(r *run.Run) { r.State, r.Attempt.Number = state, 2 })
		status := api.Status(v)
		if state.Terminal() {
			if (status.Progress != nil) != (state == run.Completed) || status.Status == "processing" {
				t.Errorf("%s: got status %s and progress %+v, want a terminal status and progress only if it succeeded", state, status.Status, status.Progress)
			}
			continue
		}
		if status.Status != "processing" || status.Progress == nil || status.Progress.Message == "" || status.Progress.Message == "ended" || status.Error != "" {
			t.Errorf("%s: got status %s and progress %+v, want processing with a message", state, status.Status, status.Progress)
			continue
		}
		message := status.Progress.Message
		same := strings.HasPrefix(string(state), "Condition") || strings.HasPrefix(string(state), "Action")
		if other, known := seen[message]; known && !same {
			t.Errorf("%s and %s: got the same message %q, want different ones", state, other, message)
		}
		seen[message] = state
	}
}

func TestProgressMessages(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		name, want string
		view       runs.View
	}{
		{"next in queue", "next in the queue", runs.View{Run: run.Run{State: run.Pending}}},
		{"queued", "position 3 in the queue", runs.View{Run: run.Run{State: run.Pending}, QueuePosition: 3}},
		{"scheduled", "2026-01-02T03:04:05Z", view(func(r *run.Run) { r.State, r.ScheduledAt = run.PreRun, at })},
		{"retrying", "2026-01-02T03:04:05Z", view(func(r *run.Run) { r.State, r.RetryAt = run.Retrying, at })},
		{"throttled and queued", "permits the start of a machine, position 3 in the queue", runs.View{
			Run: run.Run{State: run.ContainerCreating, Slot: platform.Slot{State: platform.SlotQueued}}, QueuePosition: 3,
		}},
		{"throttled", "after a failed try", view(func(r *run.Run) { r.State, r.Attempt.Throttles = run.ContainerCreating, 1 })},
		{"in the queue of its job", "waiting for a slot of job nightly, position 2 in the queue", runs.View{
			Run: run.Run{State: run.ActionRunning, JobID: "nightly", JobSlot: platform.Slot{State: platform.SlotQueued}}, QueuePosition: 2,
		}},
		{"retry_later", "checking again at 2026-01-02T03:04:05Z", view(func(r *run.Run) {
			r.State, r.Acting = run.ActionRunning, &run.Acting{Type: spec.ActionRetryLater, Waits: true, NotBefore: at}
		})},
		{"output", "verified", view(func(r *run.Run) { r.State, r.Attempt.Outcome = run.Terminating, run.OutcomeSucceeded })},
		{"cancelled", "cancel requested", view(func(r *run.Run) { r.State, r.Cancel = run.Running, &run.CancelRequest{} })},
	} {
		if got := api.Status(row.view).Progress.Message; !strings.Contains(got, row.want) {
			t.Errorf("%s: got message %q, want %q in it", row.name, got, row.want)
		}
	}
}

// TestFallbackIsShown shows a run that falls back, in the status and in the task.
func TestFallbackIsShown(t *testing.T) {
	t.Parallel()
	step := run.DetourStep{Attempt: 1, From: "default", To: "spare", Reason: platform.FallbackImage, Message: "manifest unknown", At: time.Unix(9, 0)}
	for _, state := range []run.State{run.Terminating, run.Retrying} {
		v := view(func(r *run.Run) {
			r.State, r.Attempt.Number, r.Slot.Pool = state, 1, "default"
			r.Detour = &run.Detour{Home: "default", Steps: []run.DetourStep{step}, Leaving: true}
		})
		status, task := api.Status(v), api.Task(v)
		if want := "no machine was started for attempt 1; the next one is in pool spare"; status.Progress.Message != want {
			t.Errorf("%s: got %q, want %q", state, status.Progress.Message, want)
		}
		want := []contract.FellBack{{Attempt: 1, From: "default", To: "spare", Reason: "image", Message: "manifest unknown", At: step.At}}
		if !slices.Equal(status.FellBack, want) || !slices.Equal(task.FellBack, want) || status.Pool != "default" || task.Pool != "default" {
			t.Errorf("%s: got pools %s and %s, and %+v and %+v, want default and %+v", state, status.Pool, task.Pool, status.FellBack, task.FellBack, want)
		}
	}
}

func TestProgressOfACompletedRun(t *testing.T) {
	t.Parallel()
	for skipped, want := range map[bool]string{false: "100 done", true: "none skipped: maxConcurrentRuns: all slots are held"} {
		p := api.Status(view(func(r *run.Run) {
			r.State, r.Skipped = run.Completed, skipped
			r.Violations = []spec.ConstraintViolation{{Constraint: spec.MaxConcurrentRuns, Message: "all slots are held"}}
		})).Progress
		percent := "none"
		if p.Percent != nil {
			percent = fmt.Sprint(*p.Percent)
		}
		if got := percent + " " + p.Message; got != want {
			t.Errorf("skipped %t: got progress %q, want %q", skipped, got, want)
		}
	}
}

func TestFailedStatusHasAnError(t *testing.T) {
	t.Parallel()
	cancelled := api.Status(view(func(r *run.Run) {
		r.State, r.Fault = run.Cancelled, fault.New(fault.Cancelled, "cancelled by you")
	}))
	if cancelled.Error != "cancelled by you" || cancelled.ErrorCode != "CANCELLED" || cancelled.ErrorCategory != "CANCELLED" {
		t.Errorf("got error %q, code %q, category %q, want those of the fault", cancelled.Error, cancelled.ErrorCode, cancelled.ErrorCategory)
	}
	if bare := api.Status(view(func(r *run.Run) { r.State = run.Failed })); bare.Error == "" {
		t.Error("got no error for a failed run without a fault, want one")
	}
}

// TestSkippedRunIsAnError: a skipped run is never a success, for any kind and reason (EC-6.4).
func TestSkippedRunIsAnError(t *testing.T) {
	t.Parallel()
	for want, reason := range map[string]func(r *run.Run){
		"skipped: maxConcurrentRuns: all slots are held": func(r *run.Run) {
			r.Violations = []spec.ConstraintViolation{{Constraint: spec.MaxConcurrentRuns, Message: "all slots are held"}}
		},
		"skipped: 3 runs of key shop are queued, the first is b": func(r *run.Run) {
			r.Overflowed = &run.Overflowed{Key: "shop", Rule: spec.OverflowKeepOldest, By: "b", Queued: 3}
		},
		"a firing was skipped: the job's pool does not exist": func(r *run.Run) { r.Missed = &run.Missed{Reason: run.SkipNoPool, Count: 1} },
		"skipped": func(*run.Run) {},
	} {
		for _, kind := range []string{spec.KindExport, spec.KindJob, spec.KindInference} {
			got := api.Status(view(func(r *run.Run) {
				r.State, r.Skipped, r.Work.Kind = run.Completed, true, kind
				reason(r)
			}))
			if got.Status != "error" || !got.Skipped || got.ErrorCode != "SKIPPED" || got.Error != want || got.State != "Completed" || got.OutputKey != "" {
				t.Errorf("%s: got %+v, want an error with SKIPPED and %q", kind, got, want)
			}
		}
	}
	if got := api.Status(view(func(r *run.Run) { r.State = run.Completed })); got.Skipped || got.Status != "success" {
		t.Errorf("got %+v of a run that was not skipped, want a success", got)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	v := view(func(r *run.Run) {
		r.Wait.Token, r.Attempt.MachineName = "secret-token", "m"
		r.Fault = fault.Wrap(errors.New("dial 10.0.0.3"), fault.Internal, "it failed")
		r.State = run.Failed
	})
	for _, shown := range []any{api.Status(v), api.Task(v), api.Event(v.Run, run.Event{Fault: v.Run.Fault})} {
		text, err := json.Marshal(shown)
		if err != nil || strings.Contains(string(text), "secret-token") || strings.Contains(string(text), "an-image") || strings.Contains(string(text), "10.0.0.3") {
			t.Errorf("got %s, %v, want no token, image and address", text, err)
		}
	}
}
