package suite

import (
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// bulkOfAJob cancels and retries the waiting runs of a job.
func bulkOfAJob(c *Case) {
	path := c.jobPath("bulk")
	defer c.Call("DELETE", path, "")
	stored, _ := send[api.JobAnswer](c, "PUT", path, `{"image": "a"}`, 201)
	waiting := map[string]bool{}
	for i := range 3 {
		at := stored.CreatedAt.Add(time.Duration(i+2) * time.Hour).Truncate(time.Second)
		accepted, _ := send[contract.RunAccepted](c, "POST", path+"/runs", fmt.Sprintf(`{"scheduledAt": %q}`, at.Format(time.RFC3339)), 202)
		waiting[accepted.RunID] = true
	}
	filter := fmt.Sprintf(`"filter": {"jobId": %q}, "limit": 2`, strings.TrimPrefix(path, "/v1/jobs/"))
	check := func(what string, runs []contract.BulkRun, result, state string) {
		c.T.Helper()
		for _, r := range runs {
			if !waiting[r.RunID] || r.Result != result || r.State != state {
				c.T.Errorf("%s: got %+v, want %s of a waiting run as %s", what, r, result, state)
			}
		}
		if len(runs) != len(waiting) {
			c.T.Errorf("%s: got %d runs, want %d", what, len(runs), len(waiting))
		}
	}
	check("dry run", c.bulk("/v1/runs:cancel", filter+`, "dryRun": true`), "selected", "PreRun")
	check("cancel", c.bulk("/v1/runs:cancel", filter), "cancelled", "Cancelled")
	if again := c.bulk("/v1/runs:cancel", filter); len(again) != 0 {
		c.T.Errorf("got %+v for a repeated cancel, want no run", again)
	}
	retry := strings.Replace(filter, "}", `, "states": ["Cancelled"]}`, 1)
	made := c.bulk("/v1/runs:retry", retry, "Idempotency-Key", path)
	check("retry", made, "created", "Cancelled")
	again := c.bulk("/v1/runs:retry", retry, "Idempotency-Key", path)
	check("repeated retry", again, "existing", "Cancelled")
	for i := range min(len(made), len(again)) {
		c.tasks.add(made[i].Retry.TaskID)
		if made[i].Retry.TaskID != again[i].Retry.TaskID {
			c.T.Errorf("got task %s for a repeated retry, want %s", again[i].Retry.TaskID, made[i].Retry.TaskID)
		}
	}
	c.bulk("/v1/runs:cancel", filter)
	for _, r := range made {
		c.End(r.Retry.TaskID)
	}
	send[contract.Problem](c, "POST", "/v1/runs:cancel", `{"filter": {}}`, 400)
}

// bulk repeats a bulk request until it has all pages, and returns their runs.
func (c *Case) bulk(path, members string, headers ...string) (runs []contract.BulkRun) {
	c.T.Helper()
	for cursor := ""; ; {
		answer, _ := send[contract.BulkAnswer](c, "POST", path, fmt.Sprintf(`{%s, "cursor": %q}`, members, cursor), 200, headers...)
		runs = append(runs, answer.Runs...)
		if cursor = answer.NextCursor; cursor == "" {
			return runs
		}
	}
}
