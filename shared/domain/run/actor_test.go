package run_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestActorsOfEvents runs through a life. Each event must have the actor of its fact.
func TestActorsOfEvents(t *testing.T) {
	t.Parallel()
	client := run.Actor{Subject: "token:3f9a1c", Scopes: []string{"runs:write"}}
	start := fresh()
	start.CreatedBy = client
	d := run.New(start, epoch)
	got := map[run.EventType]run.Actor{}
	note := func(d run.Decision) run.Run {
		for _, e := range d.Events {
			got[e.Type] = e.Actor
		}
		return d.Run
	}
	r := note(d)
	for i, f := range []run.Fact{
		run.Admitted{},
		run.Swept{Fact: run.MachineCreated{Attempt: 1, Machine: platform.Machine{Runner: "fly", ID: "m1"}}},
		run.WorkerContacted{Attempt: 1, WorkerID: "w1", Started: true},
		run.CancelRequested{By: "token:b2c3d4", Scopes: []string{"admin"}, Reason: "no need"},
		run.Reported{Attempt: 1, Report: run.Report{Digest: "d", Outcome: run.OutcomeCancelled}},
		run.Visited{Fact: run.Settled{Destroyed: true}},
	} {
		d, err := run.Decide(r, f, epoch.Add(time.Duration(i+1)*time.Second))
		if err != nil {
			t.Fatalf("%T: %v", f, err)
		}
		r = note(d)
	}
	want := map[run.EventType]run.Actor{
		run.EventAccepted:        client,
		run.EventAdmitted:        {},
		run.EventMachineCreated:  {Subject: run.ActorSweep},
		run.EventStarted:         {Subject: "worker:w1"},
		run.EventWorkerContacted: {Subject: "worker:w1"},
		run.EventCancelRequested: {Subject: "token:b2c3d4", Scopes: []string{"admin"}},
		run.EventAttemptEnded:    {Subject: "worker:w1"},
		run.EventCancelled:       {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actors (-want +got):\n%s", diff)
	}
	if name := got[run.EventCancelled].Name(); name != run.ActorSteps {
		t.Errorf("got %q for a step, want %q", name, run.ActorSteps)
	}
}

func TestCreatorOfARun(t *testing.T) {
	t.Parallel()
	client := run.Actor{Subject: "localhost"}
	for name, test := range map[string]struct {
		run  run.Run
		want run.Actor
	}{
		"schedule":           {run.Run{JobID: "nightly", Trigger: run.TriggerSchedule}, run.Actor{Subject: "schedule:nightly"}},
		"missed firing":      {run.Run{JobID: "nightly", Trigger: run.TriggerCatchUp}, run.Actor{Subject: "schedule:nightly"}},
		"retry of a firing":  {run.Run{JobID: "nightly", Trigger: run.TriggerSchedule, CreatedBy: client}, client},
		"another job":        {run.Run{JobID: "b", Trigger: run.TriggerJob, Lineage: []string{"first", "a"}}, run.Actor{Subject: "job:a"}},
		"manual run":         {run.Run{JobID: "b", Trigger: run.TriggerManual, CreatedBy: client}, client},
		"record without one": {run.Run{}, run.Actor{}},
	} {
		test.run.Tenant, test.run.ID, test.run.Policy = "local", "x", policy()
		if got := run.New(test.run, epoch).Events[0].Actor; !cmp.Equal(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}
