package suite

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// jobsAfterOthers starts a graph by a request: a job that succeeds, one that fails, and those that
// come after them.
func jobsAfterOthers(c *Case) {
	first := c.job("after-first", script(`echo '{"rows": 3}' >"$SORTIE_OUTPUT"`).with("output", document{"path": "rows.json"}))
	fails := c.job("after-fails", script("exit 3").with("retryConfig", document{"maxRetries": 0}).with("after", []any{jobID(first)}))
	skipped := c.job("after-skipped", script("true").with("after", []any{jobID(first), jobID(fails)}))
	tidy := c.job("after-tidy", script(`printf '%s\n' "$SORTIE_UPSTREAM"`).
		with("after", []any{jobID(first), document{"job": jobID(skipped), "when": "always"}, document{"job": jobID(fails), "when": "failure"}}))
	root := c.endOf(first, nil)
	failed := c.runsThat(fails, 1, hasEnded)[0]
	if by := failed.TriggeredBy; failed.RunID != jobID(fails)+":"+root.RunID || failed.Trigger != "after" || by == nil || by.RunID != root.RunID || failed.State != "Failed" {
		c.T.Errorf("got run %s, %s by %s of %+v, want one after %s", failed.RunID, failed.State, failed.Trigger, by, root.RunID)
	}
	missed := c.runsThat(skipped, 1, hasEnded)[0].Missed
	if missed == nil || missed.Reason != "upstream_failed" || missed.By == nil || missed.By.RunID != failed.RunID {
		c.T.Errorf("got missed %+v, want upstream_failed by %s", missed, failed.RunID)
	}
	last := c.runsThat(tidy, 1, hasEnded)[0]
	if last.State != "Completed" || last.Skipped {
		c.T.Errorf("got %s, skipped %v, want a completed run", last.State, last.Skipped)
	}
	for _, want := range []string{`"result":{"rows":3}`, `"fileName":"rows.json"`, `"skipped":true`, `"state":"Failed"`} {
		if log := c.log(last.TaskID); !strings.Contains(log, want) {
			c.T.Errorf("got the log %q, want %s", log, want)
		}
	}
	c.rerunDownstream(failed, skipped, tidy)
	if answer := c.cancel(root.TaskID, http.StatusOK); answer.Result != contract.CancelRest || !strings.Contains(answer.Message, jobID(fails)) {
		c.T.Errorf("got %+v, want rest_cancelled with the jobs after the ended run", answer)
	}
	if answer := c.Call(http.MethodDelete, first, ""); answer.Status != http.StatusUnprocessableEntity {
		c.T.Errorf("got %d %s, want a refused deletion of the first job", answer.Status, answer.Body)
	}
	circle := script("true").with("after", []any{jobID(tidy)})
	if answer := c.Call(http.MethodPut, first, string(outside.Encode(c.T, circle))); answer.Status != http.StatusUnprocessableEntity || !strings.Contains(string(answer.Body), "in a circle") {
		c.T.Errorf("got %d %s, want a refused circle", answer.Status, answer.Body)
	}
}

// rerunDownstream reruns the failed run of jobsAfterOthers with the jobs after it, and explains one
// of these.
func (c *Case) rerunDownstream(failed contract.Task, skipped, tidy string) {
	path := "/v1/runs/" + url.PathEscape(failed.RunID) + "/retry"
	again, _ := send[contract.RetryAccepted](c, http.MethodPost, path, `{"downstream": true}`, http.StatusAccepted)
	missed := c.runsThat(skipped, 2, hasEnded)[1].Missed
	if missed == nil || missed.By == nil || missed.By.RunID != again.TaskID {
		c.T.Errorf("got missed %+v after the rerun, want upstream_failed by %s", missed, again.TaskID)
	}
	if last := c.runsThat(tidy, 2, hasEnded)[1]; last.RunID != jobID(tidy)+":"+again.TaskID || last.State != "Completed" {
		c.T.Errorf("got run %s, %s, want one after the rerun %s", last.RunID, last.State, again.TaskID)
	}
	x := outside.Get[contract.JobExplanation](c.Client, tidy+"/explain")
	if x.Reason != "after_others" || len(x.Upstream) != 3 || x.Last == nil {
		c.T.Errorf("got %+v, want the three jobs that it comes after", x)
	}
	why := outside.Get[contract.Explanation](c.Client, "/v1/runs/"+url.PathEscape(jobID(skipped)+":"+again.TaskID)+"/explain")
	if g := why.Graph; len(g) != 4 || g[0].RunID == "" || g[3].JobID != jobID(tidy) || g[3].State == "" || len(x.Graph) != 4 || x.Graph[3].RunID != "" {
		c.T.Errorf("got the graphs %+v and %+v, want four jobs, with the runs of the explained one", why.Graph, x.Graph)
	}
	if why.Change == nil || why.Change.Kind != "rerun_downstream" || why.Change.Name != again.TaskID {
		c.T.Errorf("got the change %+v, want a rerun of %s", why.Change, again.TaskID)
	}
	send[contract.Problem](c, http.MethodPost, "/v1/runs/"+url.PathEscape(jobID(tidy)+":"+again.TaskID)+"/retry", `{"downstream": true}`, http.StatusUnprocessableEntity)
}

// upstreamFile runs a job after three whose results together exceed an environment variable.
func upstreamFile(c *Case) {
	var after []any
	first := c.job("upstream-first", script("true"))
	for _, name := range []string{"upstream-a", "upstream-b", "upstream-c"} {
		path := c.job(name, script(`printf '{"text": "%015000d"}' 7 >"$SORTIE_OUTPUT"`).
			with("output", document{"path": "text.json"}).with("after", []any{jobID(first)}))
		after = append(after, jobID(path))
	}
	last := c.job("upstream-last", script(`echo "in the variable: ${SORTIE_UPSTREAM:-nothing}"; tr -d 0 <"$SORTIE_UPSTREAM_FILE"; ls -l "$SORTIE_UPSTREAM_FILE" | cut -c1-10`).with("after", after))
	c.endOf(first, nil)
	log := c.log(c.runsThat(last, 1, hasEnded)[0].TaskID)
	if got := strings.Count(log, `"result":{"text":"7"}`); got != 3 || !strings.Contains(log, "in the variable: nothing") || !strings.Contains(log, "-rw-------") {
		c.T.Errorf("got %d results in the log %q, want three in a file of one user", got, log)
	}
}
