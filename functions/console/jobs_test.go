package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// bearer are the headers of an API request of the owner.
var bearer = []string{"Authorization", "Bearer " + ownerToken}

// job stores a job.
func (h *home) job(t *testing.T, id, document string) {
	t.Helper()
	if answer := h.Call(t, http.MethodPut, "/v1/jobs/"+id, document, bearer...); answer.Status != http.StatusCreated && answer.Status != http.StatusOK {
		t.Fatalf("got %d %s, want the job", answer.Status, answer.Body)
	}
}

// stored reads a job.
func (h *home) stored(t *testing.T, id string) api.JobAnswer {
	t.Helper()
	j, _ := apitest.Decoded[api.JobAnswer](t, h.Stage, http.MethodGet, "/v1/jobs/"+id, "", 200, bearer...)
	return j
}

// jobRun starts a run of a job and returns its id.
func (h *home) jobRun(t *testing.T, id string) string {
	t.Helper()
	accepted, _ := apitest.Decoded[contract.RunAccepted](t, h.Stage, http.MethodPost, "/v1/jobs/"+id+"/runs", "", 202, bearer...)
	return accepted.RunID
}

func TestJobsAreListed(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	b.page("/console/jobs", "There are no jobs yet", "sortie jobs apply", "as JSON", `aria-current="page">Jobs`)
	h.job(t, "nightly", `{"image": "report:1", "name": "The <b>report</b>", "schedule": "30 2 * * MON-FRI", "timeZone": "Europe/Berlin"}`)
	h.job(t, "manual", `{"image": "tool"}`)
	h.Call(t, http.MethodPost, "/v1/jobs/manual/runs", "", bearer...)
	cancelled := h.jobRun(t, "manual")
	h.Call(t, http.MethodPost, "/v1/runs/"+cancelled+"/cancel", "", bearer...)
	text := b.page("/console/jobs",
		`href="./jobs/nightly"`, "The &lt;b&gt;report&lt;/b&gt;", "at 02:30, on Monday to Friday", "<code>30 2 * * MON-FRI</code> Europe/Berlin", "Scheduled", " 02:30 CE",
		"On request", "newest first: Cancelled, Pending", `class="off hollow"`, `action="./jobs/nightly/pause"`, `action="./jobs/manual/run"`, "sortie jobs list")
	if strings.Contains(text, `action="./jobs/manual/pause"`) {
		t.Error("got a pause of a job without a schedule")
	}
	next := h.stored(t, "nightly").NextAt
	if !strings.Contains(text, next.UTC().Format("15:04 UTC")) || !strings.Contains(text, next.Format(time.RFC3339)) {
		t.Errorf("got no next firing at %s", next)
	}
}

// TestJobsSayWhatStartsThem has jobs that other jobs and events start.
func TestJobsSayWhatStartsThem(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "day", `{"image": "a", "schedule": "@daily"}`)
	after := []string{`{"job": "late", "when": "failure"}`}
	for n := range 7 {
		id := fmt.Sprintf("part-%d", n)
		h.job(t, id, `{"image": "a"}`)
		after = append(after, `"`+id+`"`)
	}
	h.job(t, "late", `{"image": "a", "after": ["day", {"job": "part-0", "when": "always"}]}`)
	h.job(t, "all", `{"image": "a", "after": [`+strings.Join(after, ", ")+`]}`)
	h.job(t, "order", `{"image": "a", "sensor": {"cloudEvent": {}}}`)
	rows := map[string]string{}
	for _, row := range strings.Split(h.signedIn(t, ownerToken).page("/console/jobs"), `data-job="`)[1:] {
		id, _, _ := strings.Cut(row, `"`)
		rows[id] = row
	}
	for id, want := range map[string]string{
		"late": `after <a href="./jobs/day">day</a>, <a href="./jobs/part-0">part-0</a></td>`, "all": `>part-4</a> and 2 more</td>`, "order": "on events</td>",
	} {
		if !strings.Contains(rows[id], want) {
			t.Errorf("%s: got no %q in %s", id, want, rows[id])
		}
	}
	for id, want := range map[string]string{"late": "After other jobs", "order": "On events", "part-1": "On request", "day": "Scheduled"} {
		if !strings.Contains(rows[id], "</svg>"+want+"</span>") {
			t.Errorf("%s: got no state %q in %s", id, want, rows[id])
		}
	}
}

func TestJobsAreFiltered(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for n := range 120 {
		h.job(t, fmt.Sprintf("job-%03d", n), `{"image": "a", "schedule": "@daily"}`)
	}
	h.job(t, "other", `{"image": "a", "name": "Weekly Bill"}`)
	h.Call(t, http.MethodPost, "/v1/jobs/job-077/pause", "", bearer...)
	b := h.signedIn(t, ownerToken)
	row, next := regexp.MustCompile(`data-job="([^"]+)"`), regexp.MustCompile(`href="\./([^"]+)" rel="next"`)
	seen := map[string]bool{}
	pages := 0
	for path := "/console/jobs"; path != ""; pages++ {
		text := b.page(path)
		for _, found := range row.FindAllStringSubmatch(text, -1) {
			seen[found[1]] = true
		}
		path = ""
		if more := next.FindStringSubmatch(text); more != nil {
			path = "/console/" + strings.ReplaceAll(more[1], "&amp;", "&")
		}
	}
	if len(seen) != 121 || pages != 3 {
		t.Errorf("got %d jobs on %d pages, want 121 on 3", len(seen), pages)
	}
	for query, want := range map[string][]string{
		"show=paused": {"job-077"}, "q=bill": {"other"}, "q=JOB-00&show=scheduled": {"job-000", "job-001", "job-002", "job-003", "job-004", "job-005", "job-006", "job-007", "job-008", "job-009"}, "show=request": {"other"}, "q=none": nil,
	} {
		text := b.page("/console/jobs?" + query)
		var got []string
		for _, found := range row.FindAllStringSubmatch(text, -1) {
			got = append(got, found[1])
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	b.page("/console/jobs?q=none", "No job matches these filters")
	for _, query := range []string{"show=gone", "cursor=x", "none=1"} {
		if answer := b.get("/console/jobs?" + query); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", query, answer.Status)
		}
	}
}

func TestJobIsPausedResumedAndRun(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "nightly", `{"image": "a", "schedule": "@daily", "env": {"LEVEL": "info", "SIZE": "1"}}`)
	b := h.signedIn(t, ownerToken)
	b.page("/console/jobs?show=scheduled")
	answer := b.post("/console/jobs/nightly/pause", "back", "jobs?show=scheduled")
	if to := answer.Header.Get("Location"); answer.Status != http.StatusSeeOther || to != "/console/jobs?done=job-paused&show=scheduled" || !h.stored(t, "nightly").Paused {
		t.Fatalf("got %d %s to %q, want a paused job and the list", answer.Status, answer.Body, to)
	}
	h.Clock.Advance(time.Hour)
	b.page("/console/jobs?show=paused&done=job-paused", "The schedule of the job is paused", "Paused", "1 h ago", `action="./jobs/nightly/resume"`)
	for _, back := range []string{"https://evil.example/", "//evil.example", "../../v1/jobs", `\evil`} {
		if to := b.post("/console/jobs/nightly/resume", "back", back).Header.Get("Location"); !strings.HasPrefix(to, "/console/") || strings.Contains(to, "evil") || strings.Contains(to, "..") {
			t.Errorf("%s: got a redirect to %q", back, to)
		}
	}
	if h.stored(t, "nightly").Paused {
		t.Error("got a paused job, want it resumed")
	}
	fields := []string{"key", "console-1", "parameter.LEVEL", "debug", "default.LEVEL", "info", "parameter.SIZE", "1", "default.SIZE", "1", "more", "EXTRA=a=b\r\n\r\n", "priority", "batch"}
	var to string
	for range 2 { // a form that is sent twice
		answer = b.post("/console/jobs/nightly/run", fields...)
		if answer.Status != http.StatusSeeOther || to != "" && to != answer.Header.Get("Location") {
			t.Fatalf("got %d %s to %q, want one run", answer.Status, answer.Body, answer.Header.Get("Location"))
		}
		to = answer.Header.Get("Location")
	}
	b.page(to, "The run is accepted", "debug", "EXTRA", "a=b", "batch")
	id := strings.TrimSuffix(strings.TrimPrefix(to, "/console/runs/"), "?done=job-run")
	task, _ := apitest.Decoded[contract.Task](t, h.Stage, http.MethodGet, "/v1/runs/"+id, "", 200, bearer...)
	if p := h.Run(t, task.TaskID).Parameters; len(p) != 2 || p["LEVEL"] != "debug" || p["EXTRA"] != "a=b" {
		t.Errorf("got parameters %v, want those that differ", p)
	}
	for field, value := range map[string]string{"more": "no value", "at": "soon", "priority": "huge"} {
		if answer := b.post("/console/jobs/nightly/run", field, value); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", field, answer.Status)
		}
	}
}

func TestJobsNeedTheirScopes(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "nightly", `{"image": "secret-image", "schedule": "@daily"}`)
	reader := h.signedIn(t, readerToken)
	if text := reader.page("/console/jobs", "nightly"); strings.Contains(text, "jobs/nightly/") || strings.Contains(text, "new-job") {
		t.Error("got an action for a reader")
	}
	other := h.signedIn(t, otherToken)
	if text := other.page("/console/jobs"); strings.Contains(text, "data-job") {
		t.Error("got a job of another tenant")
	}
	for _, action := range []string{"pause", "resume", "clear", "run"} {
		reader.page("/console/jobs")
		if answer := reader.post("/console/jobs/nightly/" + action); answer.Status != http.StatusForbidden {
			t.Errorf("%s of a reader: got %d, want 403", action, answer.Status)
		}
		other.page("/console/jobs")
		if answer := other.post("/console/jobs/nightly/" + action); answer.Status != http.StatusNotFound || strings.Contains(answer.Body, "secret-image") {
			t.Errorf("%s of another tenant: got %d %s, want 404", action, answer.Status, answer.Body)
		}
	}
	if h.stored(t, "nightly").Paused {
		t.Error("got a paused job")
	}
	for _, text := range hostile[:4] {
		for _, path := range []string{"/console/jobs?q=", "/console/jobs?show=", "/console/jobs?done=", "/console/jobs/"} {
			if page := reader.get(path + url.QueryEscape(text)); strings.Contains(page.Body, "<script>alert") || strings.Contains(page.Body, "<img") || strings.Contains(page.Body, "\u202e") {
				t.Errorf("%s%s: got the text in the page as it is", path, text)
			}
		}
	}
}
