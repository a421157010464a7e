package runs_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// keeping returns a fixture with the job "server", whose machines have addresses, and with a
// model.
func keeping(t *testing.T, change ...func(*runs.Config)) *fixture {
	t.Helper()
	h := setup(t, append(change, func(c *runs.Config) {
		c.Runners.Runners, c.MaxMachines = []string{platform.RunnerFly}, 20
		c.Runners.Addressed = []string{platform.RunnerFly}
	})...)
	h.createJob("server", "")
	_, _, err := h.service.Models.Create(t.Context(), client, "one", catalog.Definition{
		Engines: []platform.EngineKind{platform.EngineLlamaCpp}, Workloads: []port.Workload{port.WorkloadCompletion}, EngineModel: "one.gguf",
	}, false)
	h.ok(err)
	return h
}

// keep creates or changes the pool "own".
func (h *fixture) keep(count int) {
	h.Helper()
	h.ok(h.tryKeep("server", count))
}

func (h *fixture) tryKeep(job string, count int) error {
	place := platform.EnginePlace{Kind: platform.EngineLlamaCpp, Model: "one", Slots: 2, Machines: &platform.EngineMachines{Job: job, Count: count, Port: 8080}}
	_, _, err := h.service.Pools.Put(h.Context(), client, "own", pools.Definition{Limit: place.Limit(), Engine: &place}, change.Precondition{})
	return err
}

// replicas returns the replicas of the pool by state.
func (h *fixture) replicas() map[fleet.ReplicaState][]fleet.Replica {
	h.Helper()
	health, err := h.service.Pools.Health(h.Context(), client, "own")
	h.ok(err)
	found := map[fleet.ReplicaState][]fleet.Replica{}
	for _, r := range health.Replicas {
		found[r.Machine.Phase] = append(found[r.Machine.Phase], *r.Machine)
	}
	return found
}

// settle runs sweeps for longer than a replica may drain.
func (h *fixture) settle() {
	h.Helper()
	for range 8 {
		h.sweep()
		h.advance(2 * time.Second)
	}
}

// living returns the runs of replicas that have not ended, by replica.
func (h *fixture) living() map[string]int {
	h.Helper()
	found := map[string]int{}
	runs, _, err := h.store.List(h.Context(), client.Tenant, port.Page{Limit: 1000})
	h.ok(err)
	for _, r := range runs {
		if r.Serves != nil && !r.State.Terminal() {
			found[r.Serves.Replica]++
		}
	}
	return found
}

// wantLiving fails the test unless each of n replicas has one run, and nothing else runs.
func (h *fixture) wantLiving(when string, n int) {
	h.Helper()
	found := h.living()
	right := len(found) == n
	for i := range n {
		right = right && found[fmt.Sprintf("r%d", i+1)] == 1
	}
	if !right {
		h.Fatalf("%s: got runs %v, want one for each of %d replicas", when, found, n)
	}
}

// TestReplicasAreRuns checks that a pool has its number of replicas. They are started with
// their settings and located. A lost replica is replaced; surplus replicas, and those of a
// deleted pool, are ended.
func TestReplicasAreRuns(t *testing.T) {
	t.Parallel()
	h := keeping(t)
	h.keep(2)
	h.settle()
	h.wantLiving("two", 2)
	serving := h.replicas()[fleet.ReplicaServing]
	if len(serving) != 2 || serving[0].URL != "http://[fdaa::1]:8080" {
		t.Fatalf("got %+v, want two with the addresses of their machines", h.replicas())
	}
	env := h.runner.launched[0].spec.Env
	for name, want := range map[string]string{"ENGINE_POOL": "own", "ENGINE_REPLICA": "r1", "ENGINE_PORT": "8080", "ENGINE_HOST": "::", "ENGINE_MODEL": "one.gguf"} {
		if env[name] != want {
			t.Errorf("got %s=%s, want %s", name, env[name], want)
		}
	}
	r := h.record(serving[0].TaskID)
	if r.Trigger != run.TriggerPool || r.Serves.Pool != "own" || r.Policy.Retry.MaxAttempts != 1 || r.JobID != "server" {
		t.Errorf("got %+v, want a run of the pool without retries", r)
	}
	h.advance(2 * time.Minute)
	h.machineOf(serving[0].TaskID).exit(1)
	h.settle()
	h.wantLiving("after a loss", 2)
	again := h.replicas()[fleet.ReplicaServing][0]
	if again.Run == serving[0].Run || again.LastRun != serving[0].Run || again.Fault == nil || again.Failures != 0 {
		t.Errorf("got %+v, want another run that followed at once, with the fault of the last", again)
	}
	h.keep(1)
	h.settle()
	h.wantLiving("one", 1)
	h.ok(h.service.Pools.Delete(t.Context(), client, "own", change.Precondition{}))
	h.settle()
	h.wantLiving("none", 0)
	if _, err := h.store.LoadResource(t.Context(), port.ResourceRef{Tenant: client.Tenant, Kind: "replicas", ID: "own"}); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got %v for the record of the replicas, want none", err)
	}
}

// TestCrashedKeeperStartsNoReplicaTwice fails each write in turn, before and after it is
// applied, while replicas are started, and while those of a deleted pool end.
func TestCrashedKeeperStartsNoReplicaTwice(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{false, true} {
		for nth := 1; ; nth++ {
			h := keeping(t)
			writes := 0
			h.store.around = func(write func() error) error {
				if writes++; writes != nth {
					return write()
				}
				if applied {
					h.ok(write())
				}
				return fault.New(fault.Unavailable, "the process ended")
			}
			const most = 1000                              // writes
			for failed := true; failed && writes < most; { // the client repeats a request without an answer
				failed = h.tryKeep("server", 2) != nil
			}
			_ = h.service.Sweep(t.Context(), 0)
			h.advance(2 * time.Minute) // a sweep starts executions that were not started
			h.settle()
			h.wantLiving(fmt.Sprintf("write %d lost, applied %t", nth, applied), 2)
			if got := len(h.replicas()[fleet.ReplicaServing]); got != 2 {
				t.Fatalf("write %d lost, applied %t: got %d that serve, want 2", nth, applied, got)
			}
			h.ok(h.service.Pools.Delete(t.Context(), client, "own", change.Precondition{}))
			h.settle()
			h.wantLiving(fmt.Sprintf("write %d lost, applied %t, deleted", nth, applied), 0)
			if writes < nth {
				break // each write was lost once
			}
			if nth > 100 {
				t.Fatal("got more than 100 writes")
			}
		}
	}
}

// TestOverlappingKeepersStartOneRun calls Keep in another process during each write.
func TestOverlappingKeepersStartOneRun(t *testing.T) {
	t.Parallel()
	h := keeping(t)
	other, inside := h.system(wiring{}), false
	h.store.around = func(write func() error) error {
		if !inside {
			inside = true
			h.ok(other.Sweep(t.Context(), 0))
			inside = false
		}
		return write()
	}
	h.keep(3)
	h.settle()
	h.wantLiving("three", 3)
	if got := len(h.runner.launched); got != 3 {
		t.Errorf("got %d machines, want 3", got)
	}
}

// TestShrunkPoolEndsARunThatWasJustCreated shrinks the pool while a sweep creates a run. In one
// case the creation takes until the record of the replica is deleted.
func TestShrunkPoolEndsARunThatWasJustCreated(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, 20 * time.Minute} {
		h := keeping(t)
		h.keep(1)
		h.settle()
		writes := 0
		h.store.around = func(write func() error) error {
			if writes++; writes != 3 { // the version of the set, the intent, and the creation
				return write()
			}
			h.store.around = nil
			h.keep(1)
			h.clock.to(h.clock.now.Add(takes))
			h.ok(h.service.Sweep(t.Context(), 0))
			return write()
		}
		h.keep(2)
		h.settle()
		h.wantLiving(fmt.Sprintf("one after %s", takes), 1)
		h.advance(20 * time.Minute)
		h.settle()
		if got := h.replicas(); len(got[fleet.ReplicaServing]) != 1 || len(got[fleet.ReplicaEnding]) != 0 {
			t.Errorf("got %+v, want one that serves", got)
		}
	}
}

// TestRefusedReplicaIsShown deletes the job of a pool.
func TestRefusedReplicaIsShown(t *testing.T) {
	t.Parallel()
	h := keeping(t)
	h.keep(1)
	h.settle()
	h.ok(h.service.Jobs.Delete(t.Context(), client, "server", change.Precondition{}))
	h.machineOf(h.replicas()[fleet.ReplicaServing][0].TaskID).exit(1)
	h.settle()
	waiting := h.replicas()[fleet.ReplicaWaiting]
	if len(waiting) != 1 || waiting[0].Fault == nil || waiting[0].Fault.Code != fault.NotFound || waiting[0].Failures < 2 || waiting[0].RetryAt.Before(h.clock.now) {
		t.Fatalf("got %+v, want one that waits because its job is unknown", h.replicas())
	}
	h.createJob("server", "")
	h.advance(5 * time.Minute)
	h.settle()
	h.wantLiving("after the job was created again", 1)
}

// TestReplicaThatAnOperatorCancelsIsReplaced cancels the run of a replica.
func TestReplicaThatAnOperatorCancelsIsReplaced(t *testing.T) {
	t.Parallel()
	h := keeping(t)
	h.keep(1)
	h.settle()
	before := h.replicas()[fleet.ReplicaServing][0]
	h.cancel(before.TaskID)
	h.settle()
	h.wantLiving("after the cancel", 1)
	if after := h.replicas()[fleet.ReplicaServing]; len(after) != 1 || after[0].Run == before.Run || after[0].Failures != 0 {
		t.Errorf("got %+v, want another run", h.replicas())
	}
}

// TestReplicaWithoutAnAddressIsShown starts a replica whose runner reports its address late.
func TestReplicaWithoutAnAddressIsShown(t *testing.T) {
	t.Parallel()
	h := keeping(t)
	h.runner.during = func(m *machine) error {
		m.Address = ""
		return nil
	}
	h.keep(1)
	h.settle()
	starting := h.replicas()[fleet.ReplicaStarting]
	if len(starting) != 1 || starting[0].Fault == nil || starting[0].Fault.Code != fault.PoolUnavailable {
		t.Fatalf("got %+v, want one that starts because it has no address", h.replicas())
	}
	h.machineOf(starting[0].TaskID).Address = "10.0.0.7"
	h.settle()
	if serving := h.replicas()[fleet.ReplicaServing]; len(serving) != 1 || serving[0].URL != "http://10.0.0.7:8080" || serving[0].Fault != nil {
		t.Errorf("got %+v, want one that serves at its address", h.replicas())
	}
}

// TestMachinesOfAPoolAreChecked refuses a job whose machines have no addresses.
func TestMachinesOfAPoolAreChecked(t *testing.T) {
	t.Parallel()
	h := keeping(t, func(c *runs.Config) { c.Host.Exec = true })
	h.config.Runners.Addressed = nil
	unreachable := h.system(wiring{})
	place := platform.EnginePlace{Kind: platform.EngineLlamaCpp, Model: "one", Slots: 2, Machines: &platform.EngineMachines{Job: "server", Count: 1, Port: 8080}}
	_, _, err := unreachable.Pools.Put(t.Context(), client, "own", pools.Definition{Limit: 2, Engine: &place}, change.Precondition{})
	if f := fault.Of(err); f == nil || f.Code != fault.InvalidRequest || f.Field != "engine.machines.job" {
		t.Errorf("got %v, want an invalid engine.machines.job", err)
	}
	h.createJob("single", "constraints: {maxConcurrentRuns: 1}\n")
	for job, want := range map[string]fault.Code{"none": fault.Unprocessable, "single": fault.Unprocessable} {
		if err := h.tryKeep(job, 2); fault.Of(err) == nil || fault.Of(err).Code != want || fault.Of(err).Field != "engine.machines.job" {
			t.Errorf("job %s: got %v, want %s of engine.machines.job", job, err, want)
		}
	}
}
