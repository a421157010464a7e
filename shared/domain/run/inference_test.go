package run_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestFailedRequestNotesItsReplica fails attempts of an inference task. Replicas at which a
// request failed must be recorded, once each.
func TestFailedRequestNotesItsReplica(t *testing.T) {
	t.Parallel()
	first := fresh()
	first.Work = spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{Model: "m", Workload: "completion", Request: json.RawMessage(`{}`), MaxTokens: 9, Within: time.Hour}}
	first.Policy.Retry.MaxAttempts = 9
	r := run.New(first, epoch).Run
	for i, row := range []struct {
		used *run.Generation
		want []string
	}{
		{&run.Generation{Replica: "r1", RequestedAt: epoch}, []string{"r1"}},
		{nil, []string{"r1"}},                            // the dispatcher was lost
		{&run.Generation{Replica: "r2"}, []string{"r1"}}, // no request was sent
		{&run.Generation{Replica: "r1", RequestedAt: epoch}, []string{"r1"}},
		{&run.Generation{Replica: "r3", RequestedAt: epoch}, []string{"r1", "r3"}},
	} {
		for _, fact := range []run.Fact{
			run.Admitted{Pool: "pool0", Limit: 1},
			run.WorkerContacted{Attempt: i + 1, WorkerID: "w", Replica: "r1", Started: true},
			run.GenerationEnded{Attempt: i + 1, Fault: fault.New(fault.PoolUnavailable, "it failed"), Generation: row.used},
			run.GenerationSettled{Attempt: i + 1},
			run.Due{},
		} {
			d, err := run.Decide(r, fact, epoch.Add(time.Minute))
			if err != nil {
				t.Fatalf("attempt %d, %T: %v", i+1, fact, err)
			}
			r = d.Run
		}
		if !slices.Equal(r.FailedReplicas, row.want) {
			t.Errorf("got %v after attempt %d, want %v", r.FailedReplicas, i+1, row.want)
		}
	}
}

// TestInferenceIsCheckedSoon: if no dispatcher continues a task, a sweep finds it half a minute
// after the time that it waits for.
func TestInferenceIsCheckedSoon(t *testing.T) {
	t.Parallel()
	const slack = 30 * time.Second
	first := fresh()
	first.Work = spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{Model: "m", Workload: "completion", Request: json.RawMessage(`{}`), MaxTokens: 9, Within: time.Hour}}
	now := epoch.Add(time.Minute)
	r := run.New(first, epoch).Run
	decide := func(f run.Fact) run.Run {
		d, err := run.Decide(r, f, now)
		if err != nil {
			t.Fatalf("%T: %v", f, err)
		}
		r = d.Run
		return r
	}
	check := func(got run.Run, want time.Time) {
		t.Helper()
		if !got.Execution.ActBy.Equal(want) {
			t.Errorf("%s: got a check at %s, want %s", got.State, got.Execution.ActBy, want)
		}
	}
	starting := decide(run.Admitted{Pool: "pool0", Limit: 1})
	check(starting, starting.Attempt.StartBy.Add(slack))
	running := decide(run.WorkerContacted{Attempt: 1, WorkerID: "w", Replica: "r1", Started: true})
	check(running, running.RunBy().Add(slack))
	check(decide(run.CancelRequested{}), now.Add(slack))
	check(decide(run.GenerationEnded{Attempt: 1, Fault: fault.New(fault.PoolUnavailable, "it failed")}), now.Add(slack))
}

// TestUnstoredAnswerIsDeleted ends a run whose answer is not to be stored, with a caller that has
// received it and with one that was lost.
func TestUnstoredAnswerIsDeleted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		unstored, received bool
		kept               time.Duration
		due                time.Time
	}{
		"stored":   {false, false, 0, time.Time{}},
		"deleted":  {false, true, 0, epoch.Add(time.Minute)},
		"kept":     {false, false, time.Hour, epoch.Add(61 * time.Minute)},
		"received": {true, true, 0, epoch.Add(time.Minute)},
		"lost":     {true, false, 0, epoch.Add(61 * time.Minute)},
	} {
		first := fresh()
		first.Work = spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{
			Model: "m", Workload: "completion", Request: json.RawMessage(`{}`), MaxTokens: 9, Within: time.Hour, Unstored: row.unstored, KeptFor: row.kept,
		}}
		r := run.New(first, epoch).Run
		facts := []run.Fact{run.AnswerDeleted{}, run.CancelRequested{}}
		if row.received {
			facts = append(facts, run.AnswerDiscarded{})
		}
		for _, fact := range facts {
			d, err := run.Decide(r, fact, epoch.Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			r = d.Run
		}
		if got := r.AnswerDue(); !got.Equal(row.due) || row.due.IsZero() != r.Execution.ActBy.IsZero() || len(r.Work.Inference.Request) == 0 {
			t.Errorf("%s: got %s, checked at %s, want %s", name, got, r.Execution.ActBy, row.due)
		}
		d, err := run.Decide(r, run.AnswerDeleted{}, epoch.Add(2*time.Hour))
		if err != nil || d.Changed == row.due.IsZero() || (len(d.Run.Work.Inference.Request) == 0) == row.due.IsZero() || !d.Run.AnswerDue().IsZero() || !d.Run.Execution.ActBy.IsZero() {
			t.Errorf("%s: got %+v (%v), want no request and nothing to do", name, d.Run.Work.Inference, err)
		}
	}
}
