package suite

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func childRuns() []Test {
	needs := []Capability{Programs}
	return []Test{
		{Name: "run of a matrix has a child for each combination", Requires: needs, Run: matrixRun},
		{Name: "failed children stop their run and are run again", Requires: needs, Run: failedChildren},
		{Name: "items come from a request or another job", Requires: needs, Run: itemsOfRuns},
		{Name: "cancel of a run cancels its children", Requires: needs, Run: cancelledChildren},
	}
}

// childResult is a line of the output of a run with children.
type childResult struct {
	Index  int             `json:"index"`
	Item   json.RawMessage `json:"item"`
	RunID  string          `json:"runId"`
	State  string          `json:"state"`
	Result json.RawMessage `json:"result"`
}

// results returns the results of the children of an ended run.
func (c *Case) results(parent contract.Task) (found []childResult) {
	c.T.Helper()
	lines := json.NewDecoder(strings.NewReader(string(c.Call(http.MethodGet, "/download/"+parent.TaskID, "").Body)))
	for lines.More() {
		var line childResult
		if err := lines.Decode(&line); err != nil {
			c.T.Fatalf("got results that are no lines of JSON: %v", err)
		}
		found = append(found, line)
	}
	return found
}

// states returns the states of the children, in order.
func states(results []childResult) string {
	var all []string
	for _, r := range results {
		all = append(all, r.State)
	}
	return strings.Join(all, " ")
}

func matrixRun(c *Case) {
	path := c.job("matrix", script(`echo "[\"$SORTIE_ITEM_INDEX $SORTIE_MATRIX_region {{matrix.year}}\"]" >"$SORTIE_OUTPUT"`).
		with("output", document{"path": "out.json"}).with("maxParallel", 2).
		with("matrix", document{"year": []int{2024, 2025}, "region": []string{"eu", "us"}}))
	after := newestCursor(c.Client)
	parent := c.endOf(path, nil)
	if n := parent.Children; parent.State != "Completed" || n == nil || n.Total != 4 || n.Succeeded != 4 || n.MaxParallel != 2 {
		c.T.Fatalf("got %s with %+v, want 4 children that succeeded", parent.State, n)
	}
	results := c.results(parent)
	for i, want := range []string{"eu 2024", "eu 2025", "us 2024", "us 2025"} {
		if i >= len(results) || results[i].Index != i || string(results[i].Result) != fmt.Sprintf(`["%d %s"]`, i, want) {
			c.T.Fatalf("got results %+v, want one of %s at %d", results, want, i)
		}
	}
	child := c.task(results[2].RunID)
	if by := child.TriggeredBy; child.Child == nil || child.Child.Parent != parent.RunID || child.Child.Index != 2 || child.Trigger != "fan_out" || by == nil || by.RunID != parent.RunID {
		c.T.Errorf("got child %+v by %+v, want child 2 of %s", child.Child, by, parent.RunID)
	}
	c.publishedUntilEnd(after, url.Values{"parentRunId": {"none"}, "jobId": {jobID(path)}}, parent.TaskID)
	of := c.publishedUntilEnd(after, url.Values{"parentRunId": {parent.RunID}, "types": {"job.completed"}}, child.TaskID)
	if len(of) != 4 || of[0].Job.ParentRunID != parent.RunID {
		c.T.Errorf("got %d ends of children, want 4 with their parent", len(of))
	}
	for _, e := range eventsAfter(c.Client, after, 1000, url.Values{"parentRunId": {"none"}, "jobId": {jobID(path)}}) {
		if e.Job != nil && e.Job.RunID != parent.RunID {
			c.T.Errorf("got an event of %s, want none of children", e.Job.RunID)
		}
	}
	if runs := c.runs(path); len(runs) != 1 || runs[0].RunID != parent.RunID {
		c.T.Errorf("got %d runs of the job, want the parent", len(runs))
	}
	listed := outside.Get[contract.TaskList](c.Client, "/v1/runs?trigger=fan_out&jobId="+jobID(path)).Tasks
	for _, runs := range [][]contract.Task{listed, outside.Get[contract.JobRuns](c.Client, path+"/runs?children=true").Runs} {
		if len(runs) != 4 || runs[0].Child == nil {
			c.T.Errorf("got %d children, want 4", len(runs))
		}
	}
	c.wantProblem(http.StatusBadRequest, "children", http.MethodGet, path+"/runs?children=some", "")
	messages := c.messages(parent.TaskID, "job.children_progressed")
	if len(messages) == 0 || messages[len(messages)-1] != "4 of 4 succeeded" {
		c.T.Errorf("got events %q, want the counts", messages)
	}
}

func failedChildren(c *Case) {
	path := c.job("fails", script(`test {{item}} != b || exit 3`).with("retryConfig", document{"maxRetries": 0}).
		with("items", []string{"a", "b", "c", "d"}).with("maxParallel", 1))
	parent := c.endOf(path, nil)
	if got := states(c.results(parent)); parent.State != "Failed" || parent.Fault == nil || parent.Fault.Code != "CHILDREN_FAILED" || got != "succeeded failed skipped skipped" {
		c.T.Fatalf("got %s, %+v and children %q", parent.State, parent.Fault, got)
	}
	list, _ := send[contract.RunChildren](c, http.MethodGet, "/v1/runs/"+url.PathEscape(parent.RunID)+"/children?state=failed", "", http.StatusOK)
	if len(list.Children) != 1 || list.Children[0].Item != "b" || list.Children[0].ExitCode == nil || *list.Children[0].ExitCode != 3 || list.Counts.Skipped != 2 {
		c.T.Errorf("got the children %+v, want the failed one", list)
	}
	again, _ := send[contract.RetryAccepted](c, http.MethodPost, "/v1/runs/"+url.PathEscape(parent.RunID)+"/retry", `{"onlyFailed": true}`, http.StatusAccepted)
	rest := c.ended(contract.RunAccepted{TaskID: again.TaskID, RunID: again.TaskID})
	if results := c.results(rest); states(results) != "failed skipped skipped" || results[0].Index != 1 {
		c.T.Errorf("got %+v, want the three children that have not succeeded", results)
	}
	send[contract.Problem](c, http.MethodPost, "/v1/runs/"+url.PathEscape(c.results(parent)[0].RunID)+"/retry", `{"onlyFailed": true}`, http.StatusBadRequest)
}

func itemsOfRuns(c *Case) {
	list := c.job("lists", script(`echo '{"pages": ["x", 7]}' >"$SORTIE_OUTPUT"`).with("output", document{"path": "pages.json"}))
	each := script(`echo "\"{{item}}\"" >"$SORTIE_OUTPUT"`).with("output", document{"path": "out.json"}).
		with("after", []string{jobID(list)}).with("items", document{"from": document{"job": jobID(list), "result": "pages"}})
	path := c.job("each", each)
	first := c.endOf(list, nil)
	parent := c.runsThat(path, 1, func(r contract.Task) bool { return r.Children != nil && hasEnded(r) })[0]
	if results := c.results(parent); states(results) != "succeeded succeeded" || string(results[0].Result)+string(results[1].Result) != `"x""7"` {
		c.T.Errorf("got %+v, want the items of the output", results)
	}
	for body, want := range map[string]string{`{"items": ["p", 2]}`: `"p""2"`, fmt.Sprintf(`{"itemsFrom": %q}`, first.RunID): ""} {
		accepted, _ := send[contract.RunAccepted](c, http.MethodPost, path+"/runs", body, http.StatusAccepted)
		results := c.results(c.ended(accepted))
		if want != "" && (len(results) != 2 || string(results[0].Result)+string(results[1].Result) != want) {
			c.T.Errorf("%s: got %+v, want %s", body, results, want)
		}
		if want == "" && len(results) != 1 { // the whole output is one line
			c.T.Errorf("%s: got %+v, want a child for the line", body, results)
		}
	}
	for body, field := range map[string]string{`{"items": [{}]}`: "items.0", `{"items": [], "itemsFrom": "x"}`: "itemsFrom", `{"itemsFrom": "none"}`: "itemsFrom"} {
		answer := c.Call(http.MethodPost, path+"/runs", body)
		if answer.Status < http.StatusBadRequest || !strings.Contains(string(answer.Body), field) {
			c.T.Errorf("%s: got %d %s, want a problem of %s", body, answer.Status, answer.Body, field)
		}
	}
}

func cancelledChildren(c *Case) {
	path := c.job("cancels", script(`sleep 300`).with("items", []string{"a", "b", "c"}).with("maxParallel", 2).with("policy", document{"cancelGraceSeconds": 5}))
	accepted := c.runJob(path, nil)
	c.eventually("two children have runs", func() bool { // one that has none at the cancel is skipped
		return c.Call(http.MethodGet, "/v1/runs/"+url.PathEscape(accepted.RunID+".0"), "").Status == http.StatusOK &&
			c.Call(http.MethodGet, "/v1/runs/"+url.PathEscape(accepted.RunID+".1"), "").Status == http.StatusOK
	})
	c.cancelBetweenSweeps(accepted.RunID)
	parent := c.ended(accepted)
	if n := parent.Children; parent.State != "Cancelled" || n.Skipped != 1 || n.Cancelled+n.Failed != 2 || n.Stopped != "cancelled" {
		c.T.Errorf("got %s with %+v, want a cancelled run with its children", parent.State, n)
	}
}

// cancelBetweenSweeps cancels a run with two children. Their cancel requests need no sweep.
func (c *Case) cancelBetweenSweeps(id string) {
	c.T.Helper()
	if c.Target.HoldSweeps != nil {
		release := c.Target.HoldSweeps()
		defer release()
	}
	c.cancelRun(id)
	c.eventually("the children are cancelled, without a sweep", func() bool {
		return c.task(id+".0").Cancel != nil && c.task(id+".1").Cancel != nil
	})
}
