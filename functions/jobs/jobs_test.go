package jobs_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func setup(t *testing.T) *apitest.Stage {
	t.Helper()
	parts := apitest.NewParts(t)
	return apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		return append(jobs.Routes(s.Jobs, s.Queries, s.Explanations), tasks.Routes(s.Queries, s.Runs, s.Logs, tasks.Keys{Tokens: parts.Signer, Events: fake.NewEventKeys(nil)}, "")...)
	})
}

const path = "/v1/jobs/nightly"

func TestPutIsIdempotent(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	document := `{"image": "app", "schedule": "0 2 * * *", "constraints": {"requirePreviousSuccess": false, "catchUpWindow": "90m"}}`
	first, header := apitest.Decoded[map[string]any](t, stage, "PUT", path, document, 201)
	if header.Get("Location") != path || header.Get("ETag") == "" {
		t.Errorf("got headers %v, want Location %s and an ETag", header, path)
	}
	second, again := apitest.Decoded[map[string]any](t, stage, "PUT", path, document, 200)
	if second["version"] != 1.0 || again.Get("ETag") != header.Get("ETag") {
		t.Errorf("got version %v with tag %s, want version 1 with tag %s", second["version"], again.Get("ETag"), header.Get("ETag"))
	}
	shown, _ := apitest.Decoded[map[string]any](t, stage, "GET", path, "", 200)
	want := map[string]any{"requirePreviousSuccess": false, "catchUpWindow": "90m"}
	if got, ok := shown["constraints"].(map[string]any); !ok || len(got) != 2 || got["catchUpWindow"] != want["catchUpWindow"] || got["requirePreviousSuccess"] != false {
		t.Errorf("got constraints %v, want %v as they were stored", shown["constraints"], want)
	}
	if shown["id"] != "nightly" || first["nextAt"] == nil || shown["paused"] != false {
		t.Errorf("got %v, want the id, a next firing and no pause", shown)
	}
}

// TestNoEntityAPINoJobOfAnExport refuses to store a job that the deployment could not run.
func TestNoEntityAPINoJobOfAnExport(t *testing.T) {
	t.Parallel()
	document := `{"export": {"format": "mods", "pi": "` + apitest.PI + `"}}`
	for source, status := range map[string]int{"": 422, "http://source": 201} {
		stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route {
			return jobs.Routes(s.Jobs, s.Queries, s.Explanations)
		}, func(s *apitest.Settings) { s.Service.SourceURL = source })
		p, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", path, document, status)
		if status == 422 && (p.Field != "export" || p.Code != "UNPROCESSABLE") {
			t.Errorf("got %+v, want a problem of export", p)
		}
		apitest.Decoded[map[string]any](t, stage, "PUT", path, `{"image": "app"}`, map[int]int{422: 201, 201: 200}[status])
	}
}

func TestJobIsStoredFromYAML(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	j, _ := apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, "id: nightly\nimage: app\nenv: {A: '1'}\n", 201, "Content-Type", "application/yaml")
	if j.Image != "app" || j.Env["A"].Value != "1" {
		t.Errorf("got %+v, want the job of the document", j)
	}
	apitest.Decoded[contract.Problem](t, stage, "PUT", path, "id: nightly\nimage: app\n", 400)
	apitest.Decoded[contract.Problem](t, stage, "PUT", path, "image: app\n", 415, "Content-Type", "text/plain")
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
		if v, _ := apitest.Decoded[api.JobVersionAnswer](t, stage, "GET", path+"/versions/"+n, "", 200); v.Image != image || v.Version != int64(n[0]-'0') {
			t.Errorf("got version %d with image %s, want %s with %s", v.Version, v.Image, n, image)
		}
	}
	for n, status := range map[string]int{"4": 404, "0": 400, "01": 400, "x": 400, "-1": 400} {
		apitest.Decoded[contract.Problem](t, stage, "GET", path+"/versions/"+n, "", status)
	}
}

func TestPreconditions(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[contract.Problem](t, stage, "PUT", path, `{"image": "a"}`, 412, "If-Match", `"1"`)
	apitest.Decoded[contract.Problem](t, stage, "PUT", path, `{"image": "a"}`, 412, "If-Match", "*")
	apitest.Decoded[contract.Problem](t, stage, "PUT", path, `{"image": "a"}`, 400, "If-None-Match", `"1"`)
	_, header := apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "a"}`, 201, "If-None-Match", "*")
	tag := header.Get("ETag")
	apitest.Decoded[contract.Problem](t, stage, "PUT", path, `{"image": "a"}`, 412, "If-None-Match", "*")
	_, header = apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "b"}`, 200, "If-Match", tag)
	for _, method := range []string{"PUT", "PATCH", "DELETE"} {
		body := map[string]string{"PUT": `{"image": "c"}`, "PATCH": `{"image": "c"}`}[method]
		apitest.Decoded[contract.Problem](t, stage, method, path, body, 412, "If-Match", tag)
	}
	apitest.Decoded[contract.Problem](t, stage, "POST", path+"/pause", "", 412, "If-Match", tag)
	if j, _ := apitest.Decoded[api.JobAnswer](t, stage, "GET", path, "", 200); j.Image != "b" || j.Paused {
		t.Errorf("got %+v, want image b without a pause", j)
	}
	apitest.Decoded[struct{}](t, stage, "DELETE", path, "", 204, "If-Match", header.Get("ETag"))
	stage.Clock.Advance(time.Second)
	_, header = apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "a"}`, 201)
	if header.Get("ETag") == tag {
		t.Errorf("got tag %s of a deleted job again, want a new one", tag)
	}
}

func TestScheduleWithALargeStepIsAWarning(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	const large, fine = `{"image": "a", "schedule": "*/90 * * * *"}`, `{"image": "a", "schedule": "*/30 * * * *"}`
	for _, call := range []struct {
		query, body string
		status      int
		want        string
	}{
		{"?dryRun=true", large, 200, "larger than the range 0 to 59 of the minute"}, {"", large, 201, `the step of \"*/90\"`}, {"", large, 200, "0 alone"}, {"", fine, 200, ""},
	} {
		_, header := apitest.Decoded[api.JobAnswer](t, stage, "PUT", path+call.query, call.body, call.status)
		got := header.Get("Warning")
		if got != "" != (call.want != "") || !strings.Contains(got, call.want) || got != "" && !strings.HasPrefix(got, `299 - "schedule: position 1: `) {
			t.Errorf("%s %s: got the warning %s, want %q", call.query, call.body, got, call.want)
		}
	}
	p, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", path, `{"image": "a", "schedule": "CRON_TZ=Europe/Berlin 30 4 * * *"}`, 400)
	if len(p.Problems) != 1 || p.Problems[0].Field != "schedule" || !strings.Contains(p.Problems[0].Problem, "timeZone: Europe/Berlin") {
		t.Errorf("got %+v, want a problem of schedule that names timeZone", p)
	}
}

func TestUnknownSecretsAreWarnings(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route {
		return jobs.Routes(s.Jobs, s.Queries, s.Explanations)
	}, func(s *apitest.Settings) {
		s.Service.HasSecret = func(_ context.Context, tenant, name string) bool { return tenant == apitest.Tenant && name == "known" }
	})
	const body = `{"image": "a", "env": {"KEY": {"secretRef": "known"}, "TOKEN": {"secretRef": "unknown-1"}},
		"sensor": {"bucket": {"name": "scans", "secretRef": "unknown-2"}},
		"actions": {"onFailure": {"type": "notify", "parameters": {"service": "slack", "secretRef": "unknown-3"}}}}`
	_, header := apitest.Decoded[api.JobAnswer](t, stage, "PUT", path+"?dryRun=true", body, 200)
	got := strings.Join(header.Values("Warning"), "; ")
	for _, want := range []string{"env.TOKEN.secretRef: no secret", "sensor.bucket.secretRef: no secret", "actions.onFailure.parameters.secretRef: no secret"} {
		if !strings.Contains(got, want) {
			t.Errorf("got the warnings %s, want %q", got, want)
		}
	}
	if strings.Contains(got, "env.KEY") {
		t.Errorf("got the warnings %s, want none about a known secret", got)
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	const dry = path + "?dryRun=true"
	document := `{"image": "a", "schedule": "0 2 * * *"}`
	j, header := apitest.Decoded[api.JobAnswer](t, stage, "PUT", dry, document, 200, "If-None-Match", "*")
	if j.ID != "nightly" || j.Version != 1 || j.NextAt.IsZero() || header.Get("ETag") != "" {
		t.Errorf("got %+v with headers %v, want version 1 with a next firing and without a tag", j, header)
	}
	apitest.Decoded[contract.Problem](t, stage, "GET", path, "", 404)
	_, header = apitest.Decoded[api.JobAnswer](t, stage, "PUT", path+"?dryRun=false", document, 201)
	tag := header.Get("ETag")
	if j, _ := apitest.Decoded[api.JobAnswer](t, stage, "PUT", dry, document, 200); j.Version != 1 {
		t.Errorf("got version %d for the same definition, want 1", j.Version)
	}
	if j, _ := apitest.Decoded[api.JobAnswer](t, stage, "PUT", dry, `{"image": "b"}`, 200, "If-Match", tag); j.Version != 2 || j.Image != "b" || !j.NextAt.IsZero() {
		t.Errorf("got %+v, want image b in version 2 without a next firing", j)
	}
	for body, status := range map[string]int{
		`{"image": "a", "logs": "all"}`:                                               400,
		`{"image": "a", "pool": "unknown"}`:                                           422,
		`{"image": "a", "constraints": {"preRunHook": {"url": "https://10.0.0.1/"}}}`: 422,
	} {
		apitest.Decoded[contract.Problem](t, stage, "PUT", dry, body, status)
	}
	for _, headers := range [][]string{{"If-None-Match", "*"}, {"If-Match", `"7"`}} {
		apitest.Decoded[contract.Problem](t, stage, "PUT", dry, document, 412, headers...)
	}
	for _, value := range []string{"", "1", "TRUE"} {
		if p, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", path+"?dryRun="+value, document, 400); p.Field != "dryRun" {
			t.Errorf("%q: got a problem of %q, want dryRun", value, p.Field)
		}
	}
	j, header = apitest.Decoded[api.JobAnswer](t, stage, "GET", path, "", 200)
	if j.Image != "a" || j.Version != 1 || header.Get("ETag") != tag {
		t.Errorf("got %+v with tag %s, want version 1 with tag %s", j, header.Get("ETag"), tag)
	}
}

func TestPatchMerges(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "a", "name": "n", "env": {"A": "1", "B": {"secretRef": "b"}}, "logs": "keep"}`, 201)
	j, _ := apitest.Decoded[map[string]any](t, stage, "PATCH", path, `{"name": null, "env": {"B": "2", "C": "3"}}`, 200, "Content-Type", "application/merge-patch+json")
	env, _ := j["env"].(map[string]any)
	if j["name"] != nil || j["logs"] != "keep" || len(env) != 3 || env["A"] != "1" || env["B"] != "2" || j["version"] != 2.0 {
		t.Errorf("got %v, want no name, three variables and version 2", j)
	}
	if same, _ := apitest.Decoded[api.JobAnswer](t, stage, "PATCH", path, `{}`, 200); same.Version != 2 {
		t.Errorf("got version %d after an empty patch, want 2", same.Version)
	}
	for body, status := range map[string]int{
		`{"image": null}`: 400, `{"x": 1}`: 400, `[1]`: 400, `null`: 400, `{"id": "other"}`: 400, `{"timeZone": "Europe/Berlin"}`: 422,
		`{"name": "a", "name": "b"}`: 400, `{"policy": {"timeLimitSeconds": 1e400}}`: 400, `{"env": {"A": "1", "A": "2"}}`: 400, `{"podSpec": ` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`: 400,
	} {
		apitest.Decoded[contract.Problem](t, stage, "PATCH", path, body, status)
	}
	apitest.Decoded[contract.Problem](t, stage, "PATCH", "/v1/jobs/none", `{}`, 404)
}

// TestStoredDefinitionStaysUsable uses a definition that was valid when it was stored.
func TestStoredDefinitionStaysUsable(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "a", "actions": {"onConstraintViolation": {"type": "skip"}}}`, 201)
	j, err := stage.Store.LoadJob(t.Context(), apitest.Tenant, "nightly")
	if err != nil {
		t.Fatal(err)
	}
	j.Definition.Actions.OnConstraintViolation.Critical = new(true)
	if err := stage.Store.SaveJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if got, _ := apitest.Decoded[api.JobAnswer](t, stage, "GET", path, "", 200); got.Actions.OnConstraintViolation.Critical == nil {
		t.Errorf("got %+v, want the action as it was stored", got.Actions.OnConstraintViolation)
	}
	apitest.Decoded[api.JobAnswer](t, stage, "POST", path+"/pause", "", 200)
	apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", "{}", 202)
	p, _ := apitest.Decoded[contract.Problem](t, stage, "PATCH", path, `{"image": "b"}`, 422)
	if p.Field != "actions.onConstraintViolation.critical" {
		t.Errorf("got a problem of %q, want actions.onConstraintViolation.critical", p.Field)
	}
	apitest.Decoded[api.JobAnswer](t, stage, "PATCH", path, `{"actions": {"onConstraintViolation": {"critical": null}}}`, 200)
}

func TestProblemsOfADefinition(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	p, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", path, "{\n\"image\": \"a\",\n\"logs\": \"all\",\n\"jitter\": \"1m\"\n}", 400)
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
		if p, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", path, body, 422); p.Code != code {
			t.Errorf("%s: got code %s, want %s", body, p.Code, code)
		}
	}
	for _, id := range []string{"Nightly", "a_b", "-a", strings.Repeat("a", 64)} {
		apitest.Decoded[contract.Problem](t, stage, "PUT", "/v1/jobs/"+id, `{"image": "a"}`, 400)
	}
	apitest.Decoded[contract.Problem](t, stage, "PUT", path, `{"id": "other", "image": "a"}`, 400)
	apitest.Decoded[contract.Problem](t, stage, "PUT", path, `{"image": "a", "name": "`+strings.Repeat("n", 70_000)+`"}`, 413)
	apitest.Decoded[contract.Problem](t, stage, "GET", path, "", 404)
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "a", "schedule": "0 * * * *"}`, 201)
	for range 2 {
		if j, _ := apitest.Decoded[api.JobAnswer](t, stage, "POST", path+"/pause", "", 200); !j.Paused || j.PausedAt.IsZero() || !j.NextAt.IsZero() {
			t.Errorf("got %+v, want a paused job without a next firing", j)
		}
	}
	stage.Clock.Advance(90 * time.Minute)
	now := stage.Clock.Now()
	for range 2 {
		if j, _ := apitest.Decoded[api.JobAnswer](t, stage, "POST", path+"/resume", "{}", 200); j.Paused || !j.NextAt.After(now) || j.Version != 1 {
			t.Errorf("got %+v, want a job that fires after %s", j, now)
		}
	}
	apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/jobs/none/pause", "", 404)
}

func TestClear(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "a", "constraints": {"requirePreviousSuccess": true}}`, 201)
	for range 2 {
		if j, _ := apitest.Decoded[api.JobAnswer](t, stage, "POST", path+"/clear", "", 200); j.Version != 1 {
			t.Errorf("got version %d, want the definition unchanged", j.Version)
		}
	}
	apitest.Decoded[contract.Problem](t, stage, "POST", path+"/clear", `{"run": "a"}`, 400)
	apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/jobs/none/clear", "", 404)
}

func TestListHasPages(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for i := range 5 {
		apitest.Decoded[api.JobAnswer](t, stage, "PUT", "/v1/jobs/job-"+strconv.Itoa(i), `{"image": "a"}`, 201)
	}
	var ids []string
	for cursor := ""; ; {
		list, _ := apitest.Decoded[contract.JobList](t, stage, "GET", "/v1/jobs?limit=2&cursor="+cursor, "", 200)
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
	apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/jobs?limit=0", "", 400)
}

func TestSchemaIsServed(t *testing.T) {
	t.Parallel()
	schema, header := apitest.Decoded[map[string]any](t, setup(t), "GET", "/schemas/job.json", "", 200)
	if schema["$schema"] != "https://json-schema.org/draft/2020-12/schema" || header.Get("Content-Type") != "application/schema+json" {
		t.Errorf("got schema %v of type %s, want one of 2020-12", schema["$schema"], header.Get("Content-Type"))
	}
}
