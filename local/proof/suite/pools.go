package suite

import (
	"os"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/shared/contract"
)

func pools() []Test {
	return []Test{
		{Name: "many requests are many runs and few machines", Needs: []Capability{Plays, FillPool}, Alone: true, Run: fullPool},
		{Name: "many runs fit Fly's buckets", Needs: []Capability{Plays, Faults}, Alone: true, Limits: true, Run: realLimits},
	}
}

// many begins that many runs at once.
func (c *Case) many(n int, words string) []string {
	tasks := make([]string, n)
	c.Target.Stage.Set(c.T, c.Batch("all"), words)
	var clients sync.WaitGroup
	for i := range tasks {
		clients.Go(func() { tasks[i] = c.Begin("all", contract.ExportRequest{}) })
	}
	clients.Wait()
	return tasks
}

func fullPool(c *Case) {
	limit := c.Target.MaxMachines
	machines, hold := c.T.TempDir(), Pipe(c.T)
	tasks := c.many(limit+8, "count:"+machines+" wait:"+hold+" success")
	settled := func(s contract.Status) bool { return s.QueuePosition != nil || s.State == "Running" }
	for _, task := range tasks {
		c.Await(task, settled)
	}
	// A place is one in the line of all, and so of when all stand in it.
	waiting, placed := 0, map[int]bool{}
	for _, task := range tasks {
		status := c.Await(task, settled)
		if status.Status != contract.StatusProcessing {
			c.T.Errorf("it ended as %+v", status)
		}
		if status.QueuePosition != nil {
			waiting++
			placed[*status.QueuePosition] = true
		}
	}
	if waiting != len(tasks)-limit || len(placed) != waiting {
		c.T.Errorf("%d wait for a machine, in %d places; want %d", waiting, len(placed), len(tasks)-limit)
	}
	Release(c.T, hold)
	for _, task := range tasks {
		running, err := os.ReadDir(machines)
		if err != nil || len(running) > limit {
			c.T.Errorf("%d machines at once (%v)", len(running), err)
		}
		if status := c.End(task); status.Status != contract.StatusSuccess || status.Attempt != 1 {
			c.T.Errorf("it ended as %+v", status)
		}
	}
}

// realLimits has more runs want a machine at once than Fly makes in many
// seconds, against all of its rate limits.
func realLimits(c *Case) {
	throttled := 0
	for _, task := range c.many(8, "success") {
		if status := c.End(task); status.State != "Completed" || status.Attempt != 1 {
			c.T.Errorf("it ended as %+v", status)
		}
		told := c.Faults(task)
		count := strings.Count(told, "start_refused:THROTTLED")
		throttled += count
		if len(strings.Fields(told)) != count {
			c.T.Errorf("its events tell %q", told)
		}
	}
	c.T.Logf("they were throttled %d times", throttled)
}
