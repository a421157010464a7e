package suite

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// labelsSelect changes the labels of a run that waits for its time, and pins and unpins it.
func labelsSelect(c *Case) {
	path := c.jobPath("labelled")
	id := strings.TrimPrefix(path, "/v1/jobs/")
	defer c.Call(http.MethodDelete, path, "")
	stored, _ := send[api.JobAnswer](c, "PUT", path, "image: a\nlabels: {team: data, env: dev}\n", 201, "Content-Type", "application/yaml")
	at := stored.CreatedAt.Add(2 * time.Hour).Truncate(time.Second).Format(time.RFC3339)
	accepted, _ := send[contract.RunAccepted](c, "POST", path+"/runs", fmt.Sprintf(`{"scheduledAt": %q, "labels": {"env": "test"}}`, at), 202)
	one := "/v1/runs/" + accepted.RunID
	_, header := send[contract.Task](c, "GET", one, "", 200)
	const change = `{"labels": {"env": null, "owner": "ana"}}`
	answer := c.Call("PATCH", one, change, "If-Match", header.Get("ETag"))
	for answer.Status == http.StatusPreconditionFailed { // the system has changed the run meanwhile
		_, header = send[contract.Task](c, "GET", one, "", 200)
		answer = c.Call("PATCH", one, change, "If-Match", header.Get("ETag"))
	}
	changed := outside.Decode[contract.Task](c.T, answer.Body)
	if got := label.Text(changed.Labels); got != "owner=ana,team=data" {
		c.T.Errorf("got labels %s, want owner=ana,team=data", got)
	}
	send[contract.Problem](c, "PATCH", one, `{"labels": {"env": "x"}}`, 412, "If-Match", header.Get("ETag"))
	for selector, want := range map[string]int{"owner": 1, "team=data,env!=test": 1, "owner+in+(bob)": 0} {
		if list := outside.Get[contract.TaskList](c.Client, "/v1/runs?jobId="+id+"&label="+selector); len(list.Tasks) != want {
			c.T.Errorf("%s: got %d runs, want %d", selector, len(list.Tasks), want)
		}
	}
	filter := fmt.Sprintf(`{"filter": {"jobId": %q, "label": "owner=ana"}, "labels": {"triage": "done"}}`, id)
	for _, want := range []string{contract.BulkChanged, contract.BulkUnchanged} {
		if answer, _ := send[contract.BulkAnswer](c, "PATCH", "/v1/runs", filter, 200); len(answer.Runs) != 1 || answer.Runs[0].Result != want {
			c.T.Errorf("got %+v, want the run %s", answer.Runs, want)
		}
	}
	for _, what := range []string{"/pin", "/pin", "/unpin"} {
		if pinned, _ := send[contract.Task](c, "POST", one+what, "", 200); (pinned.Pin != nil) != (what == "/pin") {
			c.T.Errorf("%s: got the pin %v", what, pinned.Pin)
		}
	}
	jobs := 0
	for cursor := ""; ; {
		list := outside.Get[contract.JobList](c.Client, "/v1/jobs?label=team%3Ddata,env%3Ddev"+cursor)
		for _, j := range list.Jobs {
			if j.ID == id && j.Labels["env"] == "dev" {
				jobs++
			}
		}
		if list.NextCursor == "" {
			break
		}
		cursor = "&cursor=" + list.NextCursor
	}
	send[contract.CancelAnswer](c, "POST", one+"/cancel", "", 200)
	c.eventually("events of runs with the label owner", func() bool {
		return slices.ContainsFunc(eventsAfter(c.Client, "earliest", 1000, url.Values{"jobId": {id}, "label": {"owner=ana,!env"}}), func(e events.Envelope) bool {
			return e.EventType == eventtype.Cancelled
		})
	})
	for _, e := range eventsAfter(c.Client, "earliest", 1000, url.Values{"jobId": {id}, "label": {"owner"}}) {
		if e.Job == nil || e.Job.Labels["owner"] != "ana" {
			c.T.Errorf("got %s of %+v, want events with the label", e.EventType, e.Job)
		}
	}
	messages, pins := []string{}, 0
	for _, e := range c.Events(accepted.TaskID) {
		switch run.EventType(e.Type) {
		case run.EventLabelsChanged:
			messages = append(messages, e.Message)
		case run.EventPinned, run.EventUnpinned:
			pins++
		default:
		}
	}
	if got := strings.Join(messages, " "); jobs != 1 || got != "env-,owner=ana triage=done" || pins != 2 {
		c.T.Errorf("got %d jobs, the changes %q and %d changed pins, want the job, two changes and two pins", jobs, got, pins)
	}
	send[contract.CancelAnswer](c, "POST", one+"/cancel", "", 200)
}
