package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// enginePool returns a pool with count replicas of a model.
func enginePool(count, loads int, model string) platform.Pool {
	return platform.Pool{Tenant: "t", ID: "p", Version: 1, Engine: &platform.EnginePlace{
		Kind: platform.EngineLlamaCpp, Model: model, Slots: 1, Loads: loads, Machines: &platform.EngineMachines{Job: "j", Count: count, Port: 1},
	}}
}

// kept returns a replica with a run, with the settings of enginePool(…, 0, "m").
func kept(id string, state fleet.ReplicaState, since time.Duration) fleet.Replica {
	r := fleet.Replica{ID: id, Phase: state, Since: epoch.Add(-since), Number: 1, Key: "k1", Job: "j", Model: "m", AskedPort: 1, Port: 1, Run: "run-" + id}
	if state == fleet.ReplicaServing || state == fleet.ReplicaDraining {
		r.URL, r.Attempt = "http://"+id, 1
	}
	return r
}

// intended returns a replica whose run may not have been created yet.
func intended(id string, since time.Duration) fleet.Replica {
	r := kept(id, fleet.ReplicaStarting, since)
	r.Run = ""
	return r
}

// uncreated returns an unwanted replica whose run may not have been created yet.
func uncreated(id string, since time.Duration) fleet.Replica {
	r := intended(id, since)
	r.Phase = fleet.ReplicaEnding
	return r
}

// facts returns facts about the replicas: their runs are Running, unless change modifies them.
func facts(set []fleet.Replica, change func(id string, f *fleet.ReplicaFacts)) map[string]fleet.ReplicaFacts {
	found := map[string]fleet.ReplicaFacts{}
	for _, r := range set {
		of := run.Run{ID: r.Run, State: run.Running}
		of.Attempt.Number, of.Attempt.StartedAt = 1, epoch.Add(-time.Hour)
		f := fleet.ReplicaFacts{Run: &of}
		if r.Run == "" {
			f.Run = nil
		}
		if change != nil {
			change(r.ID, &f)
		}
		found[r.ID] = f
	}
	return found
}

// ended returns a change that ends a run after the time life.
func ended(life time.Duration) func(string, *fleet.ReplicaFacts) {
	return func(_ string, f *fleet.ReplicaFacts) {
		f.Run.State, f.Run.EndedAt, f.Run.Fault = run.Failed, epoch, fault.New(fault.ProgramExit, "code 1")
		f.Run.Attempt.StartedAt = epoch.Add(-life)
	}
}

func TestPlanReplicas(t *testing.T) {
	t.Parallel()
	deleted := platform.Pool{Tenant: "t", ID: "p"}
	addressed := enginePool(1, 0, "m")
	addressed.Engine.Machines = nil
	tasks := func(ids ...string) func(string, *fleet.ReplicaFacts) {
		return func(id string, f *fleet.ReplicaFacts) {
			if slices.Contains(ids, id) {
				f.Tasks = 1
			}
		}
	}
	// want lists the replicas afterwards with their numbers, then the actions of the plan.
	for name, row := range map[string]struct {
		pool   platform.Pool
		have   []fleet.Replica
		change func(string, *fleet.ReplicaFacts)
		want   string
	}{
		"none yet":               {enginePool(2, 0, "m"), nil, nil, "r1 starting 1, r2 starting 1; start r1 r2"},
		"run created, none runs": {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaStarting, 0)}, func(_ string, f *fleet.ReplicaFacts) { f.Run.State = run.Pending }, "r1 starting 1"},
		"run runs":               {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaStarting, 0)}, nil, "r1 starting 1; locate r1"},
		"all serve":              {enginePool(2, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), kept("r2", fleet.ReplicaServing, 0)}, nil, "r1 serving 1, r2 serving 1"},
		"create call was lost":   {enginePool(1, 0, "m"), []fleet.Replica{intended("r1", time.Hour)}, nil, "r1 starting 1; start r1"},
		"too few":                {enginePool(2, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0)}, nil, "r1 serving 1, r2 starting 1; start r2"},
		"too many":               {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), kept("r2", fleet.ReplicaServing, 0)}, nil, "r1 serving 1, r2 draining 1"},
		"too many, with a task":  {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), kept("r2", fleet.ReplicaDraining, time.Hour)}, tasks("r2"), "r1 serving 1, r2 draining 1"},
		"too many, without":      {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), kept("r2", fleet.ReplicaDraining, time.Hour)}, tasks("r1"), "r1 serving 1, r2 ending 1; end r2"},
		"drains for a moment":    {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), kept("r2", fleet.ReplicaDraining, time.Second)}, nil, "r1 serving 1, r2 draining 1"},
		"too many, is ending":    {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), kept("r2", fleet.ReplicaEnding, time.Hour)}, nil, "r1 serving 1, r2 ending 1; end r2"},
		"too many, has ended": {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), kept("r2", fleet.ReplicaEnding, time.Hour)}, func(id string, f *fleet.ReplicaFacts) {
			if id == "r2" {
				ended(time.Hour)(id, f)
			}
		}, "r1 serving 1"},
		"too many, not created":   {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), intended("r2", time.Hour)}, nil, "r1 serving 1, r2 ending 1"},
		"too many, never created": {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), uncreated("r2", time.Hour)}, nil, "r1 serving 1"},
		"wanted, to be created":   {enginePool(2, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), uncreated("r2", time.Second)}, nil, "r1 serving 1, r2 ending 1"},
		"wanted, never created":   {enginePool(2, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), uncreated("r2", time.Hour)}, nil, "r1 serving 1, r2 starting 2; start r2"},
		"reloaded, never created": {enginePool(2, 1, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), uncreated("r2", time.Hour)}, nil, "r1 serving 1, r2 starting 2; start r2"},
		"wanted again":            {enginePool(2, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), kept("r2", fleet.ReplicaDraining, time.Hour)}, nil, "r1 serving 1, r2 serving 1"},
		"reloaded":                {enginePool(2, 1, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), kept("r2", fleet.ReplicaServing, 0)}, nil, "r1 draining 1, r2 serving 1"},
		"reloaded, one drains":    {enginePool(2, 1, "m"), []fleet.Replica{kept("r1", fleet.ReplicaDraining, time.Hour), kept("r2", fleet.ReplicaServing, 0)}, tasks("r1"), "r1 draining 1, r2 serving 1"},
		"reloaded, one is ending": {enginePool(2, 1, "m"), []fleet.Replica{kept("r1", fleet.ReplicaEnding, 0), kept("r2", fleet.ReplicaServing, 0)}, nil, "r1 ending 1, r2 serving 1; end r1"},
		"reloaded, one has ended": {enginePool(2, 1, "m"), []fleet.Replica{kept("r1", fleet.ReplicaEnding, 0), kept("r2", fleet.ReplicaServing, 0)}, func(id string, f *fleet.ReplicaFacts) {
			if id == "r1" {
				ended(time.Second)(id, f)
			}
		}, "r1 starting 2, r2 serving 1; start r1"},
		"reloaded while it starts": {enginePool(2, 1, "m"), []fleet.Replica{kept("r1", fleet.ReplicaStarting, 0), kept("r2", fleet.ReplicaServing, 0)}, nil, "r1 draining 1, r2 serving 1"},
		"other model":              {enginePool(1, 0, "n"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0)}, nil, "r1 draining 1"},
		"other job":                {func() platform.Pool { p := enginePool(1, 0, "m"); p.Engine.Machines.Job = "k"; return p }(), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0)}, nil, "r1 draining 1"},
		"pool deleted":             {deleted, []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), intended("r2", 0)}, tasks("r1"), "r1 ending 1, r2 ending 1; end r1"},
		"engine at an address":     {addressed, []fleet.Replica{kept("r1", fleet.ReplicaServing, 0)}, nil, "r1 draining 1"},
		"lost after an hour":       {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0)}, ended(time.Hour), "r1 starting 2; start r1"},
		"lost after a second":      {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0)}, ended(time.Second), "r1 waiting 1"},
		"record is gone":           {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0)}, func(_ string, f *fleet.ReplicaFacts) { f.Run = nil }, "r1 starting 2; start r1"},
		"cancelled by an operator": {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0)}, func(_ string, f *fleet.ReplicaFacts) { f.Run.Cancel = &run.CancelRequest{} }, "r1 ending 1; end r1"},
		"another attempt":          {enginePool(1, 0, "m"), []fleet.Replica{kept("r1", fleet.ReplicaServing, 0)}, func(_ string, f *fleet.ReplicaFacts) { f.Run.Attempt.Number = 2 }, "r1 starting 1; locate r1"},
	} {
		plan := fleet.PlanReplicas(row.pool, fleet.ReplicaSet{Pool: "p", Replicas: row.have}, facts(row.have, row.change), epoch)
		if got := described(plan); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

// described returns a plan as text.
func described(plan fleet.ReplicaPlan) string {
	var replicas []string
	for _, r := range plan.Set.Replicas {
		replicas = append(replicas, fmt.Sprintf("%s %s %d", r.ID, r.Phase, r.Number))
	}
	parts := []string{strings.Join(replicas, ", ")}
	for _, each := range []struct {
		word string
		of   []fleet.Replica
	}{{"start", plan.Start}, {"locate", plan.Locate}, {"end", plan.End}} {
		if len(each.of) > 0 {
			part := each.word
			for _, r := range each.of {
				part += " " + r.ID
			}
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// TestFailingReplicaBacksOff ends each run of a replica at once. The delay before the next run
// must double up to its limit. After a run that has served for long it must start again from
// the beginning.
func TestFailingReplicaBacksOff(t *testing.T) {
	t.Parallel()
	p, now := enginePool(1, 0, "m"), epoch
	set := fleet.ReplicaSet{Pool: "p"}
	var delays []time.Duration
	keys := map[string]bool{}
	for range 12 {
		set = fleet.PlanReplicas(p, set, nil, now).Set
		r := set.Replicas[0]
		if r.Phase != fleet.ReplicaStarting || keys[r.Key] {
			t.Fatalf("got %+v, want the start of another run", r)
		}
		keys[r.Key] = true
		of := run.Run{ID: "r", TaskID: "t", State: run.Failed, Fault: fault.New(fault.ProgramExit, "code 1")}
		set.Replicas[0] = r.Created(of)
		set = fleet.PlanReplicas(p, set, map[string]fleet.ReplicaFacts{"r1": {Run: &of}}, now).Set
		r = set.Replicas[0]
		if r.Phase != fleet.ReplicaWaiting || r.Fault == nil || r.LastRun != "r" {
			t.Fatalf("got %+v, want a wait with the fault of the run", r)
		}
		delays = append(delays, r.RetryAt.Sub(now))
		if early := fleet.PlanReplicas(p, set, nil, r.RetryAt.Add(-time.Millisecond)); len(early.Start) > 0 {
			t.Fatalf("got a start before %s", r.RetryAt)
		}
		now = r.RetryAt
	}
	if delays[0] != time.Second || delays[1] != 2*time.Second || delays[11] != 5*time.Minute {
		t.Errorf("got delays %v, want 1s, 2s and so on up to 5m", delays)
	}
}

// TestReplicasThatServe lists the replicas to which a pool sends tasks.
func TestReplicasThatServe(t *testing.T) {
	t.Parallel()
	other := kept("r3", fleet.ReplicaServing, 0)
	other.Model = "n"
	set := fleet.ReplicaSet{Pool: "p", Replicas: []fleet.Replica{kept("r1", fleet.ReplicaServing, 0), kept("r2", fleet.ReplicaDraining, 0), other, intended("r4", 0)}}
	found := set.Serving(enginePool(4, 0, "m"))
	if len(found) != 1 || found[0] != (platform.EngineReplica{ID: "r1", Run: "run-r1", URL: "http://r1"}) {
		t.Errorf("got %+v, want r1 alone", found)
	}
}
