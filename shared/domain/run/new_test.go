package run_test

import (
	"slices"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestNewWithIsNewAndTheFacts compares a task that NewWith creates with facts to a task that
// New creates, with the facts applied after it.
func TestNewWithIsNewAndTheFacts(t *testing.T) {
	t.Parallel()
	task := run.Run{Tenant: "acme", ID: "inf_1", TaskID: "inf_1", Work: spec.Work{Kind: spec.KindInference, Inference: &spec.Inference{Model: "m"}}}
	facts := []run.Fact{
		run.Admitted{Pool: "p", Limit: 2}, run.WorkerContacted{Attempt: 1, WorkerID: "w", Replica: "r1", Started: true},
	}
	got, err := run.NewWith(task, epoch, facts...)
	if err != nil {
		t.Fatal(err)
	}
	want := run.New(task, epoch)
	for _, f := range facts {
		d, err := run.Decide(want.Run, f, epoch)
		if err != nil {
			t.Fatal(err)
		}
		d.Events = append(want.Events, d.Events...)
		want = d
	}
	types := func(d run.Decision) (found []run.EventType) {
		for _, e := range d.Events {
			found = append(found, e.Type)
		}
		return found
	}
	if !slices.Equal(types(got), types(want)) || got.Run.EventCount != len(got.Events) {
		t.Errorf("got the events %v of %d, want %v", types(got), got.Run.EventCount, types(want))
	}
	if got.Run.State != run.Running || got.Run.Attempt != want.Run.Attempt || got.Run.Version != 0 {
		t.Errorf("got %s with %+v, want %s with %+v", got.Run.State, got.Run.Attempt, want.Run.State, want.Run.Attempt)
	}
	if got.Lease != run.LeaseTake || got.Heartbeat.Open == nil || len(got.Effects) > 0 {
		t.Errorf("got the lease %q, the heartbeat item %v and the effects %v, want a slot, an item and none", got.Lease, got.Heartbeat.Open, got.Effects)
	}
	if _, err := run.NewWith(task, epoch, run.WorkerContacted{Attempt: 2, WorkerID: "w", Started: true}); err == nil {
		t.Error("got no error for a fact that is refused")
	}
}
