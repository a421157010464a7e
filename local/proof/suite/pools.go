package suite

import (
	"os"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/shared/contract"
)

func pools() []Test {
	return []Test{
		{Name: "full pool queues further runs", Requires: []Capability{ScriptedWorkers, FillPool}, Exclusive: true, Run: fullPool},
		{Name: "many runs stay within Fly's rate limits", Requires: []Capability{ScriptedWorkers, Faults}, Exclusive: true, RealLimits: true, Run: realLimits},
	}
}

// startMany starts n runs concurrently.
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
	machines, hold := c.T.TempDir(), Pipe(c.T)
	tasks := c.startMany(limit+8, "count:"+machines+" wait:"+hold+" success")
	settled := func(s contract.Status) bool { return s.QueuePosition != nil || s.State == "Running" }
	for _, task := range tasks {
		c.Await(task, settled)
	}
	// Queue positions are read one after the other, so they are distinct only
	// once all runs are queued.
	waiting, placed := 0, map[int]bool{}
	for _, task := range tasks {
		status := c.Await(task, settled)
		if status.Status != contract.StatusProcessing {
			c.T.Errorf("got %+v, want processing", status)
		}
		if status.QueuePosition != nil {
			waiting++
			placed[*status.QueuePosition] = true
		}
	}
	if waiting != len(tasks)-limit || len(placed) != waiting {
		c.T.Errorf("got %d queued runs in %d positions, want %d", waiting, len(placed), len(tasks)-limit)
	}
	Release(c.T, hold)
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

// realLimits starts more machines at once than Fly's rate limits allow within
// seconds.
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
