package suite

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func lists() []Test {
	return []Test{
		{Name: "task list is paginated", Requires: []Capability{AnySource}, Run: taskPages},
		{Name: "event list is paginated", Requires: []Capability{AnySource}, Run: eventPages},
		{Name: "metrics have the gauges of the pools", Requires: []Capability{AnySource}, Run: metricsOfPools},
	}
}

func taskPages(c *Case) {
	var tasks []string
	for range 5 {
		tasks = append(tasks, c.StartShort("one"))
	}
	for _, task := range tasks {
		c.End(task)
	}
	slices.Reverse(tasks)
	for _, query := range []string{"", "&state=Completed"} {
		var listed []string
		for cursor := ""; ; {
			page := outside.Get[contract.TaskList](c.Client, "/v1/tasks?limit=3"+query+cursor)
			for _, task := range page.Tasks {
				if slices.Contains(tasks, task.TaskID) {
					listed = append(listed, task.TaskID)
				}
				if query != "" && task.State != "Completed" {
					c.T.Errorf("%s in a list of completed tasks: got state %s", task.TaskID, task.State)
				}
			}
			if len(listed) == len(tasks) || page.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
		}
		if !slices.Equal(listed, tasks) {
			c.T.Errorf("list%s: got %v, want %v", query, listed, tasks)
		}
	}
	task := outside.Get[contract.Task](c.Client, "/v1/tasks/"+tasks[0])
	if task.State != "Completed" || task.BatchID != c.Batch("one") || task.Attempt != 1 || task.Kind == "" || task.CorrelationID == "" {
		c.T.Errorf("got task %+v, want Completed in attempt 1 with its batch, kind and correlation id", task)
	}
}

func eventPages(c *Case) {
	task := c.StartShort("one")
	c.End(task)
	whole := c.Events(task)
	var paged []contract.TaskEvent
	for after, more := 0, true; more; more = after != 0 {
		page := outside.Get[contract.TaskEvents](c.Client, "/v1/tasks/"+task+"/events?limit=2&after="+strconv.Itoa(after))
		paged = append(paged, page.Events...)
		after = page.NextAfter
	}
	same := func(a, b contract.TaskEvent) bool { return a.EventID == b.EventID && a.Seq == b.Seq }
	if len(whole) < 5 || !slices.EqualFunc(whole, paged, same) {
		c.T.Errorf("got %d events in pages, want the %d events of the whole list, at least 5", len(paged), len(whole))
	}
}
