package stack_test

import (
	"encoding/json"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/contract"
)

// warm gives the default pool warm machines and waits until they are ready.
func (g *target) warm(definition string, ready int) {
	g.T.Helper()
	if answer := g.Call(http.MethodPut, "/v1/pools/default", definition); answer.Status >= http.StatusMultipleChoices {
		g.T.Fatalf("got %d %s, want the pool", answer.Status, answer.Body)
	}
	g.awaitWarm(func(n contract.WarmCounts) bool { return n.Ready == ready && n.Creating+n.Ending == 0 })
}

func (g *target) awaitWarm(reached func(contract.WarmCounts) bool) {
	g.T.Helper()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	var health contract.PoolHealth
	for range 1200 {
		if err := json.Unmarshal(g.Call(http.MethodGet, "/v1/pools/default/health", "").Body, &health); err != nil {
			g.T.Fatal(err)
		}
		if reached(health.WarmMachines) {
			return
		}
		<-poll.C
	}
	g.T.Fatalf("got warm machines %+v after a minute, want others", health.WarmMachines)
}

// live returns the ids of the live machines.
func (g *target) live() map[string]bool {
	g.T.Helper()
	machines, _, err := outside.LocalStack(g.Addresses)
	if err != nil {
		g.T.Fatal(err)
	}
	found, err := machines.Live(g.T.Context())
	if err != nil {
		g.T.Fatal(err)
	}
	ids := map[string]bool{}
	for _, m := range found {
		ids[m.ID] = true
	}
	return ids
}

const warmDefinition = `{"runner": "fly", "warm": {"min": 1, "max": 2}, "limit": 4}`

// TestWarmMachineSurvivesAKill kills the process that has created a warm machine. A run of
// the next process starts on it.
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
	for _, e := range again.Events(task) {
		if e.Type == "job.machine_created" && !before[e.Message] {
			t.Errorf("got machine %s, want the warm one: %v", e.Message, before)
		}
	}
	// Another one takes its place; none is left without the setting.
	again.awaitWarm(func(n contract.WarmCounts) bool { return n == contract.WarmCounts{Ready: 1} })
	again.warm(`{"limit": 4}`, 0)
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for range 1200 {
		if len(again.live()) == 0 {
			return
		}
		<-poll.C
	}
	t.Errorf("got live machines %v, want none", again.live())
}

// TestStuckWarmMachineIsReplaced starts a run whose warm machine never leaves starting.
func TestStuckWarmMachineIsReplaced(t *testing.T) {
	t.Parallel()
	g := spawn(t, served{Data: t.TempDir(), Play: "success"})
	machines, _, err := outside.LocalStack(g.Addresses)
	if err != nil {
		t.Fatal(err)
	}
	if err := machines.SetFaults(t.Context(), faults.Plan{Rules: []faults.Rule{{Kind: faults.StuckStarting, Name: "*-w*x1"}}}); err != nil {
		t.Fatal(err)
	}
	g.warm(warmDefinition, 1)
	stuck := g.live()
	task := g.post(contract.ExportOptions{})
	if status := g.End(task); status.State != "Completed" || status.Attempt != 1 {
		t.Errorf("got %+v, want Completed in attempt 1", status)
	}
	for id := range stuck {
		if g.live()[id] {
			t.Errorf("got the live machine %s, want it destroyed", id)
		}
	}
}
