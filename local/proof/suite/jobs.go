package suite

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func jobs() []Test {
	return []Test{
		{Name: "job is stored, changed, paused and deleted", Run: jobIsStored},
		{Name: "job change is conditional", Run: jobIsConditional},
		{Name: "dry run of a job change stores nothing", Run: jobIsPreviewed},
		{Name: "job definition is refused with all problems", Run: jobProblems},
		{Name: "scheduled run of a job exists once", Run: jobFiring},
		{Name: "labels select jobs and runs, and change", Run: labelsSelect},
		{Name: "runs of a job are cancelled and retried by a filter", Run: bulkOfAJob},
		{Name: "backfill runs past times of a job once", Requires: []Capability{SampleSource}, Run: jobBackfill},
		{Name: "job exports by its schedule and triggers another", Requires: []Capability{SampleSource}, Run: jobExports},
	}
}

// jobPath returns the path of the test's job with this name.
func (c *Case) jobPath(name string) string { return "/v1/jobs/" + name + "-" + c.round }

// send makes a call, requires the status, and decodes the response.
func send[T any](c *Case, method, path, body string, status int, headers ...string) (T, http.Header) {
	c.T.Helper()
	answer := c.Call(method, path, body, headers...)
	if answer.Status != status {
		c.T.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, answer.Status, answer.Body, status)
	}
	if len(answer.Body) == 0 {
		var none T
		return none, answer.Header
	}
	return outside.Decode[T](c.T, answer.Body), answer.Header
}

func jobIsStored(c *Case) {
	path := c.jobPath("stored")
	first, header := send[api.JobAnswer](c, "PUT", path, `{"image": "a:1", "schedule": "0 2 29 2 *", "timeZone": "Europe/Berlin", "jitter": "90s"}`, 201)
	if header.Get("Location") != path || first.Version != 1 || first.NextAt.IsZero() || first.Jitter != "90s" {
		c.T.Errorf("got %+v at %s, want version 1 at %s with a next firing", first, header.Get("Location"), path)
	}
	if same, _ := send[api.JobAnswer](c, "PUT", path, "image: a:1\nschedule: 0 2 29 2 *\ntimeZone: Europe/Berlin\njitter: 90s\n", 200, "Content-Type", "application/yaml"); same.Version != 1 {
		c.T.Errorf("got version %d for the same definition, want 1", same.Version)
	}
	if changed, _ := send[api.JobAnswer](c, "PATCH", path, `{"image": "a:2", "jitter": null}`, 200); changed.Version != 2 || changed.Image != "a:2" || changed.Jitter != "" || !changed.NextAt.Equal(first.NextAt) {
		c.T.Errorf("got %+v, want version 2 with image a:2 and the same next firing", changed)
	}
	if old := outside.Get[api.JobVersionAnswer](c.Client, path+"/versions/1"); old.Image != "a:1" || old.Jitter != "90s" {
		c.T.Errorf("got %+v, want version 1 as it was", old)
	}
	if paused, _ := send[api.JobAnswer](c, "POST", path+"/pause", "", 200); !paused.Paused || !paused.NextAt.IsZero() {
		c.T.Errorf("got %+v, want a pause without a next firing", paused)
	}
	if resumed, _ := send[api.JobAnswer](c, "POST", path+"/resume", "", 200); resumed.Paused || !resumed.NextAt.Equal(first.NextAt) {
		c.T.Errorf("got %+v, want the next firing %s", resumed, first.NextAt)
	}
	listed := func() bool {
		for cursor := ""; ; {
			list := outside.Get[contract.JobList](c.Client, "/v1/jobs?limit=2&cursor="+url.QueryEscape(cursor))
			if slices.ContainsFunc(list.Jobs, func(j contract.JobSummary) bool { return j.ID == first.ID && j.Version == 2 }) {
				return true
			}
			if cursor = list.NextCursor; cursor == "" {
				return false
			}
		}
	}
	if !listed() {
		c.T.Errorf("got no job %s in the list", first.ID)
	}
	send[struct{}](c, "DELETE", path, "", 204)
	for _, gone := range []string{"", "/versions/1"} {
		send[contract.Problem](c, "GET", path+gone, "", 404)
	}
	send[contract.Problem](c, "DELETE", path, "", 404)
}

func jobIsConditional(c *Case) {
	path := c.jobPath("conditional")
	defer c.Call(http.MethodDelete, path, "")
	send[contract.Problem](c, "PUT", path, `{"image": "a"}`, 412, "If-Match", "*")
	_, header := send[api.JobAnswer](c, "PUT", path, `{"image": "a"}`, 201, "If-None-Match", "*")
	tag := header.Get("ETag")
	send[contract.Problem](c, "PUT", path, `{"image": "b"}`, 412, "If-None-Match", "*")
	send[api.JobAnswer](c, "PUT", path, `{"image": "b"}`, 200, "If-Match", tag)
	for _, call := range [][2]string{{"PUT", `{"image": "c"}`}, {"PATCH", `{"image": "c"}`}, {"DELETE", ""}} {
		send[contract.Problem](c, call[0], path, call[1], 412, "If-Match", tag)
	}
	if j := outside.Get[api.JobAnswer](c.Client, path); j.Image != "b" || j.Version != 2 {
		c.T.Errorf("got %+v, want image b in version 2", j)
	}
}

func jobIsPreviewed(c *Case) {
	path := c.jobPath("previewed")
	dry := path + "?dryRun=true"
	defer c.Call(http.MethodDelete, path, "")
	if j, _ := send[api.JobAnswer](c, "PUT", dry, `{"image": "a"}`, 200); j.Version != 1 || j.Image != "a" {
		c.T.Errorf("got %+v, want image a in version 1", j)
	}
	send[contract.Problem](c, "GET", path, "", 404)
	_, header := send[api.JobAnswer](c, "PUT", path, `{"image": "a"}`, 201)
	if j, _ := send[api.JobAnswer](c, "PUT", dry, `{"image": "b"}`, 200, "If-Match", header.Get("ETag")); j.Version != 2 || j.Image != "b" {
		c.T.Errorf("got %+v, want image b in version 2", j)
	}
	send[contract.Problem](c, "PUT", dry, `{"image": "b"}`, 412, "If-None-Match", "*")
	send[contract.Problem](c, "PUT", dry, `{"image": "b", "pool": "none-`+c.round+`"}`, 422)
	if j := outside.Get[api.JobAnswer](c.Client, path); j.Image != "a" || j.Version != 1 {
		c.T.Errorf("got %+v, want image a in version 1", j)
	}
}

func jobProblems(c *Case) {
	path := c.jobPath("problems")
	p, _ := send[contract.Problem](c, "PUT", path, "image: a\nlogs: all\nconstraint: {}\nschedule: 61 * * * *\n", 400, "Content-Type", "application/yaml")
	var got []string
	for _, each := range p.Problems {
		got = append(got, fmt.Sprintf("%d %s", each.Line, each.Field))
	}
	if want := "2 logs, 3 constraint, 4 schedule"; strings.Join(got, ", ") != want {
		c.T.Errorf("got the problems %v, want %s", got, want)
	}
	for _, body := range []string{
		`{"image": "a", "actions": {"onFailure": {"type": "skip"}}}`,
		`{"image": "a", "actions": {"onConstraintViolation": {"type": "wait"}}}`,
		`{"image": "a", "actions": {"onConstraintViolation": {"type": "skip", "critical": true}}}`,
		`{"image": "a", "constraints": {"maxAllowedRunTime": "1h"}, "policy": {"timeLimitSeconds": 60}}`,
		`{"image": "a", "podSpec": {}}`,
	} {
		if p, _ := send[contract.Problem](c, "PUT", path, body, 422); len(p.Problems) != 1 {
			c.T.Errorf("%s: got %+v, want one problem", body, p)
		}
	}
	send[contract.Problem](c, "GET", path, "", 404)
}

func jobFiring(c *Case) {
	path := c.jobPath("firing")
	defer c.Call(http.MethodDelete, path, "")
	stored, _ := send[api.JobAnswer](c, "PUT", path, `{"image": "a"}`, 201)
	at := stored.CreatedAt.Add(2 * time.Hour).Truncate(time.Second)
	body := fmt.Sprintf(`{"scheduledAt": %q, "parameters": {"A": "1"}}`, at.Format(time.RFC3339))
	first, header := send[contract.RunAccepted](c, "POST", path+"/runs", body, 202)
	if want := strings.TrimPrefix(path, "/v1/jobs/") + ":" + at.UTC().Format("20060102T150405Z"); first.RunID != want || header.Get("Location") != "/v1/runs/"+want {
		c.T.Errorf("got run %s at %s, want %s", first.RunID, header.Get("Location"), want)
	}
	for range 2 {
		if again, _ := send[contract.RunAccepted](c, "POST", path+"/runs", body, 200); again.RunID != first.RunID || again.TaskID != first.TaskID {
			c.T.Errorf("got %+v, want %+v", again, first)
		}
	}
	send[contract.Problem](c, "POST", path+"/runs", fmt.Sprintf(`{"scheduledAt": %q}`, at.AddDate(0, 0, 31).Format(time.RFC3339)), 400)
	runs := outside.Get[contract.JobRuns](c.Client, path+"/runs").Runs
	if len(runs) != 1 || runs[0].RunID != first.RunID || runs[0].State != "PreRun" || runs[0].Trigger != "manual" {
		c.T.Errorf("got runs %+v, want one that waits for its time", runs)
	}
	send[contract.CancelAnswer](c, "POST", "/v1/runs/"+first.RunID+"/cancel", "", 200)
	if r := outside.Get[contract.Task](c.Client, "/v1/runs/"+first.RunID); r.State != "Cancelled" {
		c.T.Errorf("got state %s, want Cancelled", r.State)
	}
}

// jobBackfill runs a job for times of its schedule that have passed, each once.
func jobBackfill(c *Case) {
	path := c.jobPath("backfill")
	defer c.Call(http.MethodDelete, path, "")
	document := fmt.Sprintf(`{"export": {"format": "dc", "pi": %q}, "schedule": "0 0 1 1 *", "constraints": {"catchUpWindow": "1h"}}`, samples.SampleRoot)
	stored, _ := send[api.JobAnswer](c, "PUT", path, document, 201)
	year := stored.CreatedAt.Year()
	body := func(at string) string { return fmt.Sprintf(`{"scheduledAt": %q, "backfill": "b.1"}`, at) }
	last := fmt.Sprintf("%d-01-01T00:00:00Z", year)
	first, _ := send[contract.RunAccepted](c, "POST", path+"/runs", body(last), 202)
	if again, _ := send[contract.RunAccepted](c, "POST", path+"/runs", strings.Replace(body(last), "b.1", "b.2", 1), 200); again.RunID != first.RunID {
		c.T.Errorf("got run %s by another backfill, want %s", again.RunID, first.RunID)
	}
	if status := c.End(first.TaskID); status.Status != contract.StatusSuccess {
		c.T.Fatalf("got %+v, want a success, although catchUpWindow has passed", status)
	}
	r := outside.Get[contract.Task](c.Client, "/v1/runs/"+first.RunID)
	if r.Trigger != "backfill" || r.Priority != "batch" || r.Labels["backfill"] != "b.1" || !r.FiredAt.IsZero() {
		c.T.Errorf("got %+v, want the trigger, the priority and the label of a backfill", r)
	}
	for wrong, field := range map[string]string{
		body(fmt.Sprintf("%d-01-01T00:00:00Z", year+1)):                   "scheduledAt",
		body(fmt.Sprintf("%d-01-01T00:00:01Z", year)):                     "scheduledAt",
		`{"backfill": "b.1"}`:                                             "scheduledAt",
		fmt.Sprintf(`{"scheduledAt": %q, "backfill": "-"}`, last):         "backfill",
		fmt.Sprintf(`{"scheduledAt": %q, "backfill": "a\nb"}`, last):      "backfill",
		fmt.Sprintf(`{"scheduledAt": %q}`, last):                          "scheduledAt",
		fmt.Sprintf(`{"scheduledAt": %q, "backfill": "b", "x": 1}`, last): "x",
	} {
		if problem, _ := send[contract.Problem](c, "POST", path+"/runs", wrong, 400); !strings.Contains(fmt.Sprint(problem), field) {
			c.T.Errorf("%s: got %+v, want a problem of %s", wrong, problem, field)
		}
	}
}

// jobExports fires a job that exports. Its success triggers another job.
func jobExports(c *Case) {
	path, next := c.jobPath("exports"), c.jobPath("exports-next")
	defer c.Call(http.MethodDelete, path, "")
	defer c.Call(http.MethodDelete, next, "")
	export := fmt.Sprintf(`"export": {"format": "dc", "pi": %q}, "constraints": {"maxConcurrentRuns": 1}`, samples.SampleRoot)
	send[api.JobAnswer](c, "PUT", next, "{"+export+"}", 201)
	action := fmt.Sprintf(`"actions": {"onSuccess": {"type": "trigger_job", "parameters": {"jobId": %q}}}`, strings.TrimPrefix(next, "/v1/jobs/"))
	stored, _ := send[api.JobAnswer](c, "PUT", path, "{"+export+", "+action+"}", 201)
	at := stored.CreatedAt.Add(5 * time.Second).Truncate(time.Second)
	send[api.JobAnswer](c, "PATCH", path, fmt.Sprintf(`{"schedule": "@at %s"}`, at.Format(time.RFC3339)), 200)
	fired := c.firstRun(path)
	if status := c.End(fired.TaskID); status.Status != contract.StatusSuccess || status.Format != "dc" || fired.Trigger != "schedule" || !fired.ScheduledAt.Equal(at) {
		c.T.Fatalf("got %+v of %+v, want a success by the schedule at %s", status, fired, at)
	}
	if file := c.Call(http.MethodGet, "/download/"+fired.TaskID, ""); file.Status != http.StatusOK || file.Header.Get("Content-Type") != "application/xml" {
		c.T.Errorf("GET /download: got %d %v, want an XML file", file.Status, file.Header)
	}
	triggered := c.firstRun(next)
	if status := c.End(triggered.TaskID); status.Status != contract.StatusSuccess || triggered.Trigger != "trigger_job" || triggered.Kind != "export" {
		c.T.Errorf("got %+v of %+v, want a success by trigger_job", status, triggered)
	}
}

// firstRun waits for the first run of a job.
func (c *Case) firstRun(path string) contract.Task {
	c.T.Helper()
	var runs []contract.Task
	await.Within(c.T, firingLimit, "run of "+path, func() bool {
		runs = outside.Get[contract.JobRuns](c.Client, path+"/runs").Runs
		return len(runs) > 0
	})
	c.tasks.add(runs[0].TaskID)
	return runs[0]
}

// firingLimit limits the time until a firing. EventBridge Scheduler is precise to the minute.
const firingLimit = 3 * time.Minute
