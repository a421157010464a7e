package suite

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func pools() []Test {
	return []Test{
		{Name: "full pool queues further runs", Requires: []Capability{ScriptedWorkers, FillPool}, Exclusive: true, Run: fullPool},
		{Name: "many runs stay within Fly's rate limits", Requires: []Capability{ScriptedWorkers, Faults}, Exclusive: true, RealLimits: true, Run: realLimits},
	}
}

// startMany starts n runs concurrently and returns their tasks.
func (c *Case) startMany(n int, words string) []string {
	tasks := make([]string, n)
	c.Target.Scripts.Set(c.T, c.Batch("all"), words)
	var clients sync.WaitGroup
	for i := range tasks {
		clients.Go(func() { tasks[i] = c.Start("all", contract.ExportRequest{}) })
	}
	clients.Wait()
	return tasks
}

func fullPool(c *Case) {
	limit := c.Target.MaxMachines
	machines, hold := c.T.TempDir(), scripts.Pipe(c.T)
	tasks := c.startMany(limit+8, "count:"+machines+" wait:"+hold+" success")
	// A queued run may get its machine before the next run is read, so check the positions only
	// when the pool is full.
	c.eventually(fmt.Sprintf("%d machines and 8 queued runs in 8 positions", limit), func() bool {
		running, placed := 0, map[int]bool{}
		for _, task := range tasks {
			status := c.Await(task, func(contract.Status) bool { return true })
			if status.Status != contract.StatusProcessing {
				c.T.Fatalf("got %+v, want processing", status)
			}
			if status.QueuePosition != nil {
				placed[*status.QueuePosition] = true
			} else if status.State == "Running" {
				running++
			}
		}
		if running > limit {
			c.T.Fatalf("got %d machines, want at most %d", running, limit)
		}
		return running == limit && len(placed) == len(tasks)-limit
	})
	scripts.Release(c.T, hold)
	for _, task := range tasks {
		current, err := os.ReadDir(machines)
		if err != nil || len(current) > limit {
			c.T.Errorf("got %d concurrent machines (%v), want at most %d", len(current), err, limit)
		}
		if status := c.End(task); status.Status != contract.StatusSuccess || status.Attempt != 1 {
			c.T.Errorf("got %+v, want success in one attempt", status)
		}
	}
}

// realLimits starts more machines concurrently than Fly's rate limits permit within seconds.
func realLimits(c *Case) {
	throttled := 0
	for _, task := range c.startMany(8, "success") {
		if status := c.End(task); status.State != "Completed" || status.Attempt != 1 {
			c.T.Errorf("got %+v, want Completed in one attempt", status)
		}
		events := c.Faults(task)
		count := strings.Count(events, "start_refused:THROTTLED")
		throttled += count
		if len(strings.Fields(events)) != count {
			c.T.Errorf("got fault events %q, want throttled starts only", events)
		}
	}
	c.T.Logf("%d starts were throttled", throttled)
}
