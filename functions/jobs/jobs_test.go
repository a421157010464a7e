package jobs_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/httpkit/apitest"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func setup(t *testing.T) *apitest.Stage {
	t.Helper()
	return apitest.New(t, apitest.NewParts(t), func(s *orchestrator.System) []httpkit.Route {
		return jobs.Routes(s.Jobs, s.Queries)
	})
}

// call expects a status and decodes the response.
func call[T any](t *testing.T, stage *apitest.Stage, method, path, body string, status int, headers ...string) (v T, header http.Header) {
	t.Helper()
	answer := stage.Call(t, method, path, body, headers...)
	if answer.Status != status {
		t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, answer.Status, answer.Body, status)
	}
	if answer.Body == "" {
		return v, answer.Header
	}
	if err := json.Unmarshal([]byte(answer.Body), &v); err != nil {
		t.Fatalf("%s %s: got %s: %v", method, path, answer.Body, err)
	}
	return v, answer.Header
}

const path = "/v1/jobs/nightly"

func TestPutIsIdempotent(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	document := `{"image": "app", "schedule": "0 2 * * *", "constraints": {"requirePreviousSuccess": false, "catchUpWindow": "90m"}}`
	first, header := call[map[string]any](t, stage, "PUT", path, document, 201)
	if header.Get("Location") != path || header.Get("ETag") == "" {
		t.Errorf("got headers %v, want Location %s and an ETag", header, path)
	}
	second, again := call[map[string]any](t, stage, "PUT", path, document, 200)
	if second["version"] != 1.0 || again.Get("ETag") != header.Get("ETag") {
		t.Errorf("got version %v with tag %s, want version 1 with tag %s", second["version"], again.Get("ETag"), header.Get("ETag"))
	}
	shown, _ := call[map[string]any](t, stage, "GET", path, "", 200)
	want := map[string]any{"requirePreviousSuccess": false, "catchUpWindow": "90m"}
	if got, ok := shown["constraints"].(map[string]any); !ok || len(got) != 2 || got["catchUpWindow"] != want["catchUpWindow"] || got["requirePreviousSuccess"] != false {
		t.Errorf("got constraints %v, want %v as they were stored", shown["constraints"], want)
	}
	if shown["id"] != "nightly" || first["nextAt"] == nil || shown["paused"] != false {
		t.Errorf("got %v, want the id, a next firing and no pause", shown)
	}
}

func TestJobIsStoredFromYAML(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	j, _ := call[api.JobAnswer](t, stage, "PUT", path, "id: nightly\nimage: app\nenv: {A: '1'}\n", 201, "Content-Type", "application/yaml")
	if j.Image != "app" || j.Env["A"].Value != "1" {
		t.Errorf("got %+v, want the job of the document", j)
	}
	call[contract.Problem](t, stage, "PUT", path, "id: nightly\nimage: app\n", 400)
	call[contract.Problem](t, stage, "PUT", path, "image: app\n", 415, "Content-Type", "text/plain")
}

func TestVersionsStayReadable(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for _, image := range []string{"one", "two", "three"} {
		stage.Clock.Advance(time.Second)
		if answer := stage.Call(t, "PUT", path, `{"image": "`+image+`"}`); answer.Status >= 300 {
			t.Fatalf("got %d %s, want a stored job", answer.Status, answer.Body)
		}
	}
	for n, image := range map[string]string{"1": "one", "2": "two", "3": "three"} {
		if v, _ := call[api.JobVersionAnswer](t, stage, "GET", path+"/versions/"+n, "", 200); v.Image != image || v.Version != int64(n[0]-'0') {
			t.Errorf("got version %d with image %s, want %s with %s", v.Version, v.Image, n, image)
		}
	}
	for n, status := range map[string]int{"4": 404, "0": 400, "01": 400, "x": 400, "-1": 400} {
		call[contract.Problem](t, stage, "GET", path+"/versions/"+n, "", status)
	}
}

func TestPreconditions(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	call[contract.Problem](t, stage, "PUT", path, `{"image": "a"}`, 412, "If-Match", `"1"`)
	call[contract.Problem](t, stage, "PUT", path, `{"image": "a"}`, 412, "If-Match", "*")
	call[contract.Problem](t, stage, "PUT", path, `{"image": "a"}`, 400, "If-None-Match", `"1"`)
	_, header := call[api.JobAnswer](t, stage, "PUT", path, `{"image": "a"}`, 201, "If-None-Match", "*")
	tag := header.Get("ETag")
	call[contract.Problem](t, stage, "PUT", path, `{"image": "a"}`, 412, "If-None-Match", "*")
	_, header = call[api.JobAnswer](t, stage, "PUT", path, `{"image": "b"}`, 200, "If-Match", tag)
	for _, method := range []string{"PUT", "PATCH", "DELETE"} {
		body := map[string]string{"PUT": `{"image": "c"}`, "PATCH": `{"image": "c"}`}[method]
		call[contract.Problem](t, stage, method, path, body, 412, "If-Match", tag)
	}
	call[contract.Problem](t, stage, "POST", path+"/pause", "", 412, "If-Match", tag)
	if j, _ := call[api.JobAnswer](t, stage, "GET", path, "", 200); j.Image != "b" || j.Paused {
		t.Errorf("got %+v, want image b without a pause", j)
	}
	call[struct{}](t, stage, "DELETE", path, "", 204, "If-Match", header.Get("ETag"))
	stage.Clock.Advance(time.Second)
	_, header = call[api.JobAnswer](t, stage, "PUT", path, `{"image": "a"}`, 201)
	if header.Get("ETag") == tag {
		t.Errorf("got tag %s of a deleted job again, want a new one", tag)
	}
}

func TestPatchMerges(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	call[api.JobAnswer](t, stage, "PUT", path, `{"image": "a", "name": "n", "env": {"A": "1", "B": {"secretRef": "b"}}, "logs": "keep"}`, 201)
	j, _ := call[map[string]any](t, stage, "PATCH", path, `{"name": null, "env": {"B": "2", "C": "3"}}`, 200, "Content-Type", "application/merge-patch+json")
	env, _ := j["env"].(map[string]any)
	if j["name"] != nil || j["logs"] != "keep" || len(env) != 3 || env["A"] != "1" || env["B"] != "2" || j["version"] != 2.0 {
		t.Errorf("got %v, want no name, three variables and version 2", j)
	}
	if same, _ := call[api.JobAnswer](t, stage, "PATCH", path, `{}`, 200); same.Version != 2 {
		t.Errorf("got version %d after an empty patch, want 2", same.Version)
	}
	for body, status := range map[string]int{
		`{"image": null}`: 400, `{"x": 1}`: 400, `[1]`: 400, `null`: 400, `{"id": "other"}`: 400, `{"timeZone": "Europe/Berlin"}`: 422,
	} {
		call[contract.Problem](t, stage, "PATCH", path, body, status)
	}
	call[contract.Problem](t, stage, "PATCH", "/v1/jobs/none", `{}`, 404)
}

func TestProblemsOfADefinition(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	p, _ := call[contract.Problem](t, stage, "PUT", path, "{\n\"image\": \"a\",\n\"logs\": \"all\",\n\"jitter\": \"1m\"\n}", 400)
	if len(p.Problems) != 2 || p.Problems[0].Field != "logs" || p.Problems[0].Line != 3 || p.Problems[1].Field != "jitter" || p.Field != "logs" {
		t.Errorf("got %+v, want problems of logs, line 3, and of jitter", p)
	}
	for body, code := range map[string]string{
		`{"image": "a", "jitter": "1m"}`:                                                                         "UNPROCESSABLE",
		`{"image": "a", "constraints": {"preRunHook": {"url": "https://10.0.0.1/"}}}`:                            "UNPROCESSABLE",
		`{"image": "a", "constraints": {"maxAllowedRunTime": "1h"}, "policy": {"timeLimitSeconds": 60}}`:         "UNPROCESSABLE",
		`{"image": "a", "actions": {"onFailure": {"type": "webhook", "parameters": {"url": "https://[::1]/"}}}}`: "UNPROCESSABLE",
		`{"image": "exec:/bin/true"}`:                                                                            "RUNNER_NOT_ALLOWED",
	} {
		if p, _ := call[contract.Problem](t, stage, "PUT", path, body, 422); p.Code != code {
			t.Errorf("%s: got code %s, want %s", body, p.Code, code)
		}
	}
	for _, id := range []string{"Nightly", "a_b", "-a", strings.Repeat("a", 64)} {
		call[contract.Problem](t, stage, "PUT", "/v1/jobs/"+id, `{"image": "a"}`, 400)
	}
	call[contract.Problem](t, stage, "PUT", path, `{"id": "other", "image": "a"}`, 400)
	call[contract.Problem](t, stage, "PUT", path, `{"image": "a", "name": "`+strings.Repeat("n", 70_000)+`"}`, 413)
	call[contract.Problem](t, stage, "GET", path, "", 404)
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	call[api.JobAnswer](t, stage, "PUT", path, `{"image": "a", "schedule": "0 * * * *"}`, 201)
	for range 2 {
		if j, _ := call[api.JobAnswer](t, stage, "POST", path+"/pause", "", 200); !j.Paused || j.PausedAt.IsZero() || !j.NextAt.IsZero() {
			t.Errorf("got %+v, want a paused job without a next firing", j)
		}
	}
	stage.Clock.Advance(90 * time.Minute)
	now := stage.Clock.Now()
	for range 2 {
		if j, _ := call[api.JobAnswer](t, stage, "POST", path+"/resume", "{}", 200); j.Paused || !j.NextAt.After(now) || j.Version != 1 {
			t.Errorf("got %+v, want a job that fires after %s", j, now)
		}
	}
	call[contract.Problem](t, stage, "POST", "/v1/jobs/none/pause", "", 404)
}

func TestListHasPages(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for i := range 5 {
		call[api.JobAnswer](t, stage, "PUT", "/v1/jobs/job-"+strconv.Itoa(i), `{"image": "a"}`, 201)
	}
	var ids []string
	for cursor := ""; ; {
		list, _ := call[contract.JobList](t, stage, "GET", "/v1/jobs?limit=2&cursor="+cursor, "", 200)
		for _, j := range list.Jobs {
			ids = append(ids, j.ID)
		}
		if cursor = list.NextCursor; cursor == "" {
			break
		}
	}
	if got, want := strings.Join(ids, " "), "job-0 job-1 job-2 job-3 job-4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	call[contract.Problem](t, stage, "GET", "/v1/jobs?limit=0", "", 400)
}

func TestSchemaIsServed(t *testing.T) {
	t.Parallel()
	schema, header := call[map[string]any](t, setup(t), "GET", "/schemas/job.json", "", 200)
	if schema["$schema"] != "https://json-schema.org/draft/2020-12/schema" || header.Get("Content-Type") != "application/schema+json" {
		t.Errorf("got schema %v of type %s, want one of 2020-12", schema["$schema"], header.Get("Content-Type"))
	}
}
