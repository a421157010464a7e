package suite

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/contract"
)

func lists() []Test {
	return []Test{
		{Name: "tasks are listed in pages", Needs: []Capability{AnySource}, Run: taskPages},
		{Name: "events are read in pages", Needs: []Capability{AnySource}, Run: eventPages},
	}
}

func taskPages(c *Case) {
	var made []string
	for range 5 {
		made = append(made, c.Quick("one"))
	}
	for _, task := range made {
		c.End(task)
	}
	slices.Reverse(made)
	for _, query := range []string{"", "&state=Completed"} {
		var listed []string
		for cursor := ""; ; {
			page := outside.Get[contract.TaskList](c.Client, "/v1/tasks?limit=3"+query+cursor)
			for _, task := range page.Tasks {
				if slices.Contains(made, task.TaskID) {
					listed = append(listed, task.TaskID)
				}
				if query != "" && task.State != "Completed" {
					c.T.Errorf("%s is %s", task.TaskID, task.State)
				}
			}
			if len(listed) == len(made) || page.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
		}
		if !slices.Equal(listed, made) {
			c.T.Errorf("the list%s has %v of %v", query, listed, made)
		}
	}
	task := outside.Get[contract.Task](c.Client, "/v1/tasks/"+made[0])
	if task.State != "Completed" || task.BatchID != c.Batch("one") || task.Attempt != 1 || task.Kind == "" || task.CorrelationID == "" {
		c.T.Errorf("the task is %+v", task)
	}
}

func eventPages(c *Case) {
	task := c.Quick("one")
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
		c.T.Errorf("the pages have %d of %d events", len(paged), len(whole))
	}
}
