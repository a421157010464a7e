package suite

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func jobRuns() []Test {
	needs := []Capability{Programs}
	return []Test{
		{Name: "true, false, sleep and a report are jobs", Requires: needs, Run: plainJobs},
		{Name: "manual run has its parameters and its key", Requires: needs, Run: manualRun},
		{Name: "run waits for its time and gets the newest definition", Requires: needs, Run: waitingRun},
		{Name: "run of a deleted job keeps its version", Requires: needs, Run: runOfDeletedJob},
		{Name: "waiting run is cancelled", Run: waitingRunCancelled},
	}
}

// holdScript is a program that reads the pipe HOLD, if it is set, and exits with CODE.
const holdScript = `[ -z "$HOLD" ] || head -c 1 "$HOLD"; exit ${CODE:-0}`

// job stores the test's job with this name and returns its path. The job is removed at the end
// of the test.
func (c *Case) job(name string, d document) (path string) {
	c.T.Helper()
	path = c.jobPath(name)
	c.stored = append(c.stored, path)
	send[api.JobAnswer](c, http.MethodPut, path, string(outside.Encode(c.T, d)), http.StatusCreated)
	return path
}

// removeJobs deletes the jobs of the test. It adds their runs to the tasks of the suite.
func (c *Case) removeJobs() {
	for _, path := range slices.Backward(c.stored) { // a job that others come after is deleted after them
		if c.Call(http.MethodPost, path+"/pause", "").Status != http.StatusOK {
			continue // the job was not stored
		}
		for _, r := range c.runs(path) {
			c.tasks.add(r.TaskID)
		}
		if answer := c.Call(http.MethodDelete, path, ""); answer.Status != http.StatusNoContent {
			c.T.Errorf("DELETE %s: got %d %s, want 204", path, answer.Status, answer.Body)
		}
	}
}

// jobID returns the id of the job at a path.
func jobID(path string) string { return strings.TrimPrefix(path, "/v1/jobs/") }

// runs returns the runs of a job, ordered by time.
func (c *Case) runs(path string) []contract.Task {
	c.T.Helper()
	runs := outside.Get[contract.JobRuns](c.Client, path+"/runs?limit=1000").Runs
	slices.SortFunc(runs, func(a, b contract.Task) int { return placeOf(a).Compare(placeOf(b)) })
	return runs
}

// placeOf returns the scheduled time of a run, or its creation time if it has none.
func placeOf(r contract.Task) time.Time {
	if r.ScheduledAt.IsZero() {
		return r.CreatedAt
	}
	return r.ScheduledAt
}

// runsThat waits until n runs of a job satisfy ok, and returns those runs.
func (c *Case) runsThat(path string, n int, ok func(contract.Task) bool) (found []contract.Task) {
	c.T.Helper()
	c.eventually(fmt.Sprintf("%d runs of %s that satisfy the test", n, path), func() bool {
		found = slices.DeleteFunc(c.runs(path), func(r contract.Task) bool { return !ok(r) })
		return len(found) >= n
	})
	return found
}

func hasEnded(r contract.Task) bool { return !r.EndedAt.IsZero() }

// runJob starts a run of a job.
func (c *Case) runJob(path string, parameters map[string]string) contract.RunAccepted {
	c.T.Helper()
	body := string(outside.Encode(c.T, contract.JobRunRequest{Parameters: parameters}))
	accepted, _ := send[contract.RunAccepted](c, http.MethodPost, path+"/runs", body, http.StatusAccepted)
	return accepted
}

// endOf runs a job and returns the ended run.
func (c *Case) endOf(path string, parameters map[string]string) contract.Task {
	c.T.Helper()
	return c.ended(c.runJob(path, parameters))
}

// task reads a run by either of its ids.
func (c *Case) task(id string) contract.Task {
	c.T.Helper()
	return outside.Get[contract.Task](c.Client, "/v1/runs/"+url.PathEscape(id))
}

// cancelRun requests the cancellation of a run by its run id.
func (c *Case) cancelRun(id string) {
	c.T.Helper()
	if answer := c.Call(http.MethodPost, "/v1/runs/"+url.PathEscape(id)+"/cancel", ""); answer.Status >= http.StatusBadRequest {
		c.T.Errorf("cancel of %s: got %d %s, want a success", id, answer.Status, answer.Body)
	}
}

// messages returns the messages of a run's events of one type.
func (c *Case) messages(task, kind string) (messages []string) {
	c.T.Helper()
	for _, e := range c.Events(task) {
		if e.Type == kind {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// log returns the stored log of a run.
func (c *Case) log(task string) string {
	c.T.Helper()
	return string(c.Call(http.MethodGet, "/v1/tasks/"+task+"/logs", "").Body)
}

// plainJobs runs programs without the SDK as stored jobs.
func plainJobs(c *Case) {
	if run := c.endOf(c.job("true", script("true")), nil); run.State != "Completed" || run.Machine.Exit.Code != 0 {
		c.T.Errorf("true: got %+v, want Completed with exit code 0", run)
	}
	if run := c.endOf(c.job("false", script("false")), nil); run.State != "Failed" || run.Machine.Exit.Code != 1 || run.Fault.Code != "PROGRAM_EXIT" {
		c.T.Errorf("false: got %+v, want Failed with exit code 1", run)
	}
	sleeping := c.runJob(c.job("sleep", script("exec sleep 600")), nil)
	c.Running(sleeping.TaskID)
	c.cancelRun(sleeping.RunID)
	if run := c.ended(sleeping); run.State != "Cancelled" {
		c.T.Errorf("sleep: got %+v, want Cancelled", run)
	}
	path := c.job("written", script(`echo "a line"; echo "another line" >&2; echo "a,b" >report.csv`).with("output", document{"path": "report.csv", "contentType": "text/csv"}))
	run := c.endOf(path, nil)
	file := c.Call(http.MethodGet, "/download/"+run.TaskID, "")
	if log := c.log(run.TaskID); run.State != "Completed" || string(file.Body) != "a,b\n" || !strings.Contains(log, "a line\n") || !strings.Contains(log, "another line\n") {
		c.T.Errorf("report: got %+v with file %q and log %q, want both", run, file.Body, log)
	}
}

func manualRun(c *Case) {
	path := c.job("manual", script(`echo "level $LEVEL of $TEAM"`).with("env", document{"LEVEL": "info", "TEAM": "data"}))
	key, body := c.Batch("key"), `{"parameters": {"LEVEL": "debug"}}`
	first, header := send[contract.RunAccepted](c, http.MethodPost, path+"/runs", body, http.StatusAccepted, "Idempotency-Key", key)
	if first.RunID != first.TaskID || header.Get("Location") != "/v1/runs/"+first.RunID {
		c.T.Errorf("got %+v at %s, want one id", first, header.Get("Location"))
	}
	if again, _ := send[contract.RunAccepted](c, http.MethodPost, path+"/runs", body, http.StatusOK, "Idempotency-Key", key); again.RunID != first.RunID {
		c.T.Errorf("got run %s for the same key, want %s", again.RunID, first.RunID)
	}
	send[contract.Problem](c, http.MethodPost, path+"/runs", `{}`, http.StatusUnprocessableEntity, "Idempotency-Key", key)
	run := c.ended(first)
	if run.State != "Completed" || run.Trigger != "manual" || run.JobID != jobID(path) || run.JobVersion != 1 {
		c.T.Errorf("got %+v, want a completed manual run of version 1", run)
	}
	if log := c.log(run.TaskID); !strings.Contains(log, "level debug of data\n") {
		c.T.Errorf("got log %q, want the parameter in place of the job's variable", log)
	}
	if runs := c.runs(path); len(runs) != 1 {
		c.T.Errorf("got %d runs, want 1", len(runs))
	}
	p, _ := send[contract.Problem](c, http.MethodPost, path+"/runs", `{"parameters": {"A=B": "1"}}`, http.StatusBadRequest)
	if p.Field != "parameters.A=B" {
		c.T.Errorf("got the field %q of a malformed parameter, want its name", p.Field)
	}
}

// soon returns the server's current time plus ahead, in whole seconds.
func (c *Case) soon(path string, ahead time.Duration) time.Time {
	c.T.Helper()
	now, err := http.ParseTime(c.Call(http.MethodGet, path, "").Header.Get("Date"))
	if err != nil {
		c.T.Fatalf("got no time from the server: %v", err)
	}
	return now.UTC().Add(ahead).Truncate(time.Second)
}

func waitingRun(c *Case) {
	path := c.job("waiting", script("echo old"))
	at := c.soon(path, 6*time.Second)
	body := string(outside.Encode(c.T, contract.JobRunRequest{ScheduledAt: at}))
	accepted, _ := send[contract.RunAccepted](c, http.MethodPost, path+"/runs", body, http.StatusAccepted)
	if run := c.task(accepted.RunID); run.State != "PreRun" || !run.ScheduledAt.Equal(at) {
		c.T.Errorf("got %+v, want PreRun until %s", run, at)
	}
	send[api.JobAnswer](c, http.MethodPatch, path, `{"command": ["-c", "echo new"]}`, http.StatusOK)
	run := c.ended(accepted)
	if run.State != "Completed" || run.StartedAt.Before(at) || run.JobVersion != 2 {
		c.T.Errorf("got %+v, want version 2 completed after %s", run, at)
	}
	if log := c.log(run.TaskID); !strings.Contains(log, "new\n") {
		c.T.Errorf("got log %q, want that of the newest definition", log)
	}
	// Both ids identify the run in both families of routes.
	for _, id := range []string{run.RunID, run.TaskID} {
		for _, prefix := range []string{"/v1/runs/", "/v1/tasks/"} {
			if same := outside.Get[contract.Task](c.Client, prefix+url.PathEscape(id)); same.RunID != run.RunID || same.TaskID != run.TaskID {
				c.T.Errorf("%s%s: got %s, %s, want %s, %s", prefix, id, same.RunID, same.TaskID, run.RunID, run.TaskID)
			}
		}
	}
}

// runOfDeletedJob deletes the job of a waiting run, and stores another job with the same id.
func runOfDeletedJob(c *Case) {
	path := c.job("deleted", script("echo first"))
	body := string(outside.Encode(c.T, contract.JobRunRequest{ScheduledAt: c.soon(path, 6*time.Second)}))
	accepted, _ := send[contract.RunAccepted](c, http.MethodPost, path+"/runs", body, http.StatusAccepted)
	first := outside.Get[api.JobAnswer](c.Client, path)
	if answer := c.Call(http.MethodDelete, path, ""); answer.Status != http.StatusNoContent {
		c.T.Fatalf("DELETE %s: got %d %s, want 204", path, answer.Status, answer.Body)
	}
	again, _ := send[api.JobAnswer](c, http.MethodPut, path, string(outside.Encode(c.T, script("echo second"))), http.StatusCreated)
	if again.Version != first.Version+1 {
		c.T.Errorf("got version %d of the later job, want %d", again.Version, first.Version+1)
	}
	if got := c.Call(http.MethodGet, fmt.Sprintf("%s/versions/%d", path, first.Version), ""); got.Status != http.StatusNotFound {
		c.T.Errorf("got %d %s for the version of the deleted job, want 404", got.Status, got.Body)
	}
	run := c.ended(accepted)
	if run.State != "Completed" || run.JobVersion != first.Version || !strings.Contains(c.log(run.TaskID), "first\n") {
		c.T.Errorf("got %+v with the log %q, want version %d of the deleted job", run, c.log(run.TaskID), first.Version)
	}
}

func waitingRunCancelled(c *Case) {
	path := c.job("cancelled", document{"image": "a"})
	body := string(outside.Encode(c.T, contract.JobRunRequest{ScheduledAt: c.soon(path, time.Hour)}))
	accepted, _ := send[contract.RunAccepted](c, http.MethodPost, path+"/runs", body, http.StatusAccepted)
	c.cancelRun(accepted.RunID)
	if run := c.ended(accepted); run.State != "Cancelled" || run.Machine != nil {
		c.T.Errorf("got %+v, want Cancelled without a machine", run)
	}
}
