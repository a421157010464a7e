package stack_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// warm sets warm machines for the default pool and waits until they are ready.
func (g *target) warm(definition string, ready int) {
	g.T.Helper()
	if answer := g.Call(http.MethodPut, "/v1/pools/default", definition); answer.Status >= http.StatusMultipleChoices {
		g.T.Fatalf("got %d %s, want the pool", answer.Status, answer.Body)
	}
	g.awaitWarm(func(n contract.WarmCounts) bool { return n.Ready == ready && n.Creating+n.Ending == 0 })
}

func (g *target) awaitWarm(reached func(contract.WarmCounts) bool) {
	g.T.Helper()
	var health contract.PoolHealth
	g.T.Cleanup(func() {
		if g.T.Failed() {
			g.T.Logf("the last warm machines were %+v", health.WarmMachines)
		}
	})
	await.Until(g.T, "such warm machines", func() bool {
		if err := json.Unmarshal(g.Call(http.MethodGet, "/v1/pools/default/health", "").Body, &health); err != nil {
			g.T.Fatal(err)
		}
		return reached(health.WarmMachines)
	})
}

// machines returns the live machines.
func (g *target) machines() []outside.Machine {
	g.T.Helper()
	machines, _, err := outside.LocalStack(g.Addresses)
	if err != nil {
		g.T.Fatal(err)
	}
	found, err := machines.Live(g.T.Context())
	if err != nil {
		g.T.Fatal(err)
	}
	return found
}

// live returns the ids of the live machines.
func (g *target) live() map[string]bool {
	g.T.Helper()
	ids := map[string]bool{}
	for _, m := range g.machines() {
		ids[m.ID] = true
	}
	return ids
}

const warmDefinition = `{"runner": "fly", "warm": {"min": 1, "max": 2}, "limit": 4}`

// TestWarmMachineSurvivesAKill kills the process that created a warm machine. A run of the next
// process starts on that machine.
func TestWarmMachineSurvivesAKill(t *testing.T) {
	t.Parallel()
	given := served{Data: t.TempDir(), Play: "success"}
	g := spawn(t, given)
	g.warm(warmDefinition, 1)
	before := g.live()
	g.kill(syscall.SIGKILL)

	again := spawn(t, given)
	task := again.post(contract.ExportOptions{})
	if status := again.End(task); status.State != "Completed" || status.Attempt != 1 {
		t.Errorf("got %+v, want Completed in attempt 1", status)
	}
	if got := again.machineOf(task); !before[got] {
		t.Errorf("got machine %s, want the warm one: %v", got, before)
	}
	// A new warm machine replaces it. Without the setting, all warm machines are removed.
	again.awaitWarm(func(n contract.WarmCounts) bool { return n == contract.WarmCounts{Ready: 1} })
	again.warm(`{"limit": 4}`, 0)
	await.Until(t, "end of the last machine", func() bool { return len(again.live()) == 0 })
}

// TestStuckWarmMachineIsReplaced starts a run on a warm machine that never leaves starting, and so
// does the next one of its pool. The run continues on a new machine, in the same attempt, which has
// the full start limit. The test waits for no state in between, which a slow host would miss.
func TestStuckWarmMachineIsReplaced(t *testing.T) {
	t.Parallel()
	g := spawn(t, served{Data: t.TempDir(), Play: "success"})
	machines, _, err := outside.LocalStack(g.Addresses)
	if err != nil {
		t.Fatal(err)
	}
	const ofPool = "*-w*x1"
	if err := machines.SetFaults(t.Context(), faults.Plan{Rules: []faults.Rule{{Kind: faults.StuckStarting, Name: ofPool}}}); err != nil {
		t.Fatal(err)
	}
	g.warm(warmDefinition, 1)
	stuck := g.live()
	task := g.post(contract.ExportOptions{})
	if status := g.End(task); status.State != "Completed" || status.Attempt != 1 {
		t.Errorf("got %+v, want Completed in attempt 1", status)
	}
	for _, m := range g.machines() {
		if warm, _ := path.Match(ofPool, m.Name); warm && m.Config.Env["TASK_ID"] == task {
			t.Errorf("got the live machine %s of %s, want it destroyed", m.ID, task)
		}
		if stuck[m.ID] {
			t.Errorf("got the live machine %s, want it destroyed", m.ID)
		}
	}
	if got := g.machineOf(task); got == "" || stuck[got] {
		t.Errorf("got machine %q, want a new one", got)
	}
}

// machineOf returns the id of the last machine of a task.
func (g *target) machineOf(task string) (id string) {
	g.T.Helper()
	for _, e := range g.Events(task) {
		if e.Type == "job.machine_created" {
			id = e.Message
		}
	}
	return id
}

// TestRecycledMachineRunsAnotherTask runs tasks on a pool that recycles its machines, until one
// reuses the machine of an earlier task. Each task has its own token and log, and an empty
// disk. A waiting machine shows no environment.
func TestRecycledMachineRunsAnotherTask(t *testing.T) {
	t.Parallel()
	g := start(t, served{Data: t.TempDir()})
	g.Token = g.stack.Token()
	g.warm(`{"runner": "fly", "warm": {"min": 1, "max": 2, "after": "recycle", "image": "exec:/bin/sh"}, "limit": 4}`, 1)
	hold := t.TempDir()
	script := `echo task $TASK_ID; ls -A \"$HOME\"; touch \"$HOME/left\"; while ! test -e ` + hold + `/$TASK_ID; do sleep 0.05; done`
	answer := g.Call(http.MethodPut, "/v1/jobs/report", `{"image": "exec:/bin/sh", "command": ["-c", "`+script+`"], "retryConfig": {"maxRetries": 0}}`, "If-None-Match", "*")
	if answer.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
	}
	ran, envelopes := map[string]string{}, map[string]bool{}
	for range 3 { // three tasks on two machines
		answer := g.Call(http.MethodPost, "/v1/jobs/report/runs", "{}")
		var accepted struct{ TaskID string }
		if err := json.Unmarshal(answer.Body, &accepted); err != nil || answer.Status != http.StatusAccepted {
			t.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
		}
		task := accepted.TaskID
		g.Running(task)
		for _, m := range g.machines() {
			if envelope := m.Config.Env[contract.EnvelopeVariable]; m.Config.Env["TASK_ID"] == task {
				if envelope == "" || envelopes[envelope] {
					t.Errorf("got envelope %q of task %s, want one with its own token", envelope, task)
				}
				envelopes[envelope] = true
			}
		}
		// The other machine is created while this one is claimed.
		g.awaitWarm(func(n contract.WarmCounts) bool { return n.Ready == 1 && n.Claimed == 1 })
		if err := os.WriteFile(filepath.Join(hold, task), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if status := g.End(task); status.State != "Completed" || status.Attempt != 1 {
			t.Fatalf("got %+v, want Completed in attempt 1", status)
		}
		if log := string(g.Call(http.MethodGet, "/v1/tasks/"+task+"/logs", "").Body); log != "task "+task+"\n" {
			t.Errorf("got log %q of task %s, want its id alone", log, task)
		}
		machine := g.machineOf(task)
		if earlier, ok := ran[machine]; ok {
			t.Logf("task %s ran on the machine of task %s", task, earlier)
		}
		ran[machine] = task
		g.awaitWarm(func(n contract.WarmCounts) bool { return n == contract.WarmCounts{Ready: 2} })
		for _, m := range g.machines() {
			if len(m.Config.Env) > 0 {
				t.Errorf("got machine %s with the environment %v, want none while it waits", m.ID, m.Config.Env)
			}
		}
	}
	if len(envelopes) != 3 {
		t.Errorf("got %d envelopes, want that of each task", len(envelopes))
	}
	if len(ran) > 2 {
		t.Errorf("got tasks on machines %v, want two machines", ran)
	}
}
