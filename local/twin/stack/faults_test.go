package stack_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestRunsSurviveRandomFaults injects random faults, by seed, at every request.
func TestRunsSurviveRandomFaults(t *testing.T) {
	t.Parallel()
	everywhere := func(kind faults.Kind, rate float64) []faults.Rule {
		var rules []faults.Rule
		for _, action := range []string{faults.Create, faults.Get, faults.List, faults.Wait, faults.Stop, faults.Destroy} {
			rules = append(rules, faults.Rule{Kind: kind, Action: action, Rate: rate})
		}
		return rules
	}
	rules := []faults.Rule{
		{Kind: faults.Capacity, Rate: 0.1},
		{Kind: faults.Slow, Rate: 0.2, For: time.Second},
		{Kind: faults.Invisible, Rate: 0.2, For: 2 * time.Second},
		{Kind: faults.StuckCreated, Rate: 0.15, For: 2 * time.Second},
		{Kind: faults.StuckStarting, Rate: 0.1},
		{Kind: faults.StuckDestroying, Rate: 0.15, For: 2 * time.Second},
		{Kind: faults.OOM, Rate: 0.15},
		{Kind: faults.LostExit, Rate: 0.3},
		{Kind: faults.Unreachable, Rate: 0.1},
	}
	for _, kind := range []faults.Kind{faults.Throttle, faults.BadGateway, faults.BadGatewayAfter, faults.LostAnswer} {
		rules = append(rules, everywhere(kind, 0.1)...)
	}
	begin := func(seed uint64, machines string) (g *target, tasks []string) {
		g = start(t, served{Settings: map[string]string{
			"SORTIE_START_TIMEOUT": "8s", "SORTIE_FURTHER_STARTS": "6", "SORTIE_MAX_ATTEMPTS": "6",
			"SORTIE_RETRY_DELAY": "1s", "SORTIE_RETRY_MAX_DELAY": "2s", "SORTIE_MAX_MACHINES": machines,
		}})
		if err := g.stack.Machines().SetFaults(faults.Plan{Seed: seed, Rules: rules}); err != nil {
			t.Fatal(err)
		}
		for range 6 {
			tasks = append(tasks, g.post(contract.ExportOptions{}))
		}
		return g, tasks
	}
	end := func(g *target, tasks []string) {
		for _, task := range tasks {
			status := g.End(task)
			t.Logf("%s in attempt %d: %s", status.State, status.Attempt, g.Faults(task))
			file := g.Call(http.MethodGet, "/download/"+task, "")
			if status.State != "Completed" || file.Status != http.StatusOK || int64(len(file.Body)) != *status.OutputFileSize {
				t.Errorf("got %+v and a download with status %d and %d bytes, want a complete output", status, file.Status, len(file.Body))
			}
		}
		g.nothingLeft(len(tasks))
	}
	one, ones := begin(1, "4")
	two, twos := begin(2, "0")
	end(one, ones)
	end(two, twos)
}

// nothingLeft waits until no machine runs. It then checks the number of outputs in the object
// store.
func (g *target) nothingLeft(objects int) {
	g.T.Helper()
	if err := g.stack.Machines().SetFaults(faults.Plan{}); err != nil {
		g.T.Fatal(err)
	}
	machines, buckets, err := outside.LocalStack(g.Addresses)
	if err != nil {
		g.T.Fatal(err)
	}
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	var live []outside.Machine
	var stored []string
	for range 1200 {
		if live, err = machines.Live(g.T.Context()); err != nil {
			g.T.Fatal(err)
		}
		if stored, err = filepath.Glob(filepath.Join(g.Data, "s3", "blobs", "*", "*")); err != nil {
			g.T.Fatal(err)
		}
		kept, err := buckets.Objects(g.T.Context(), buckets.Accepted)
		if err != nil {
			g.T.Fatal(err)
		}
		logs := outside.Logs(kept)
		if len(live) == 0 && len(stored) == objects+len(logs) {
			return
		}
		<-poll.C
	}
	g.T.Errorf("got machines %v and %d objects, want no machine and %d outputs", live, len(stored), objects)
}
