package tasks_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const mergePatch = "application/merge-patch+json"

// patch sends a change of labels.
func patch[T any](t *testing.T, stage *apitest.Stage, path, body string, status int, headers ...string) (T, http.Header) {
	t.Helper()
	return apitest.Decoded[T](t, stage, http.MethodPatch, path, body, status, append([]string{"Content-Type", mergePatch}, headers...)...)
}

func TestLabelsOfARunChange(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Failure(t, "no manifest")
	path := "/v1/runs/" + task
	_, header := apitest.Decoded[contract.Task](t, stage, http.MethodGet, path, "", 200)
	first := header.Get("ETag")
	changed, header := patch[contract.Task](t, stage, path, `{"labels":{"team":"data","example.org/triage":""}}`, 200, "If-Match", first)
	if label.Text(changed.Labels) != "example.org/triage=,team=data" || header.Get("ETag") == first {
		t.Errorf("got %v with the tag %s, want the labels and another tag", changed.Labels, header.Get("ETag"))
	}
	patch[contract.Problem](t, stage, path, `{"labels":{"team":"web"}}`, 412, "If-Match", first)
	patch[contract.Problem](t, stage, path, `{"labels":{"team":"web"}}`, 412, "If-None-Match", "*")
	again, same := apitest.Decoded[contract.Task](t, stage, http.MethodPatch, "/v1/tasks/"+task, `{"labels":{"team":"data","absent":null}}`, 200, "If-Match", "*")
	if same.Get("ETag") != header.Get("ETag") || len(again.Labels) != 2 {
		t.Errorf("got %v with the tag %s, want no change", again.Labels, same.Get("ETag"))
	}
	patch[contract.Task](t, stage, path, `{"labels":{"team":null}}`, 200)
	if got := get[contract.Task](t, stage, path); label.Text(got.Labels) != "example.org/triage=" || got.State != "Failed" {
		t.Errorf("got %s with %v, want the failed run without the team", got.State, got.Labels)
	}
	var changes []string
	for _, e := range get[contract.TaskEvents](t, stage, "/v1/tasks/"+task+"/events").Events {
		if e.Type == string(run.EventLabelsChanged) {
			changes = append(changes, e.Message)
		}
	}
	if got := strings.Join(changes, " "); got != "example.org/triage=,team=data team-" {
		t.Errorf("got events of %q, want one of each change", got)
	}
}

func TestRunsAreSelectedByLabels(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	var tasks []string
	for _, labels := range []string{`{"team":"data","env":"dev"}`, `{"team":"data","env":"prod"}`, `{"team":"web"}`} {
		stage.Clock.Advance(time.Second)
		tasks = append(tasks, stage.Failure(t, "no"))
		patch[contract.Task](t, stage, "/v1/runs/"+tasks[len(tasks)-1], `{"labels":`+labels+`}`, 200)
	}
	for selector, want := range map[string]string{"team=data": "1 0", "team=data,env!=dev": "1", "env": "1 0", "!env": "2", "env+in+(prod,test)": "1", "team=none": ""} {
		var got []string
		for _, one := range get[contract.TaskList](t, stage, "/v1/runs?state=Failed&label="+selector).Tasks {
			for i, id := range tasks {
				if one.TaskID == id {
					got = append(got, fmt.Sprint(i))
				}
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: got %q, want %q", selector, text, want)
		}
	}
	retried := post[contract.BulkAnswer](t, stage, retryRuns, `{"dryRun":true,"filter":{"label":"team=web"}}`, 200)
	if got := results(retried); got != tasks[2]+" selected" {
		t.Errorf("got %s, want the run of the team", got)
	}
	body := `{"filter":{"label":"team=data"},"labels":{"env":"dev","old":null}%s}`
	dry, _ := patch[contract.BulkAnswer](t, stage, "/v1/runs", fmt.Sprintf(body, `,"dryRun":true`), 200)
	if got, want := results(dry), tasks[1]+" selected, "+tasks[0]+" selected"; got != want || stage.Run(t, tasks[1]).Labels["env"] != "prod" {
		t.Errorf("got %s in a dry run, want %s and no change", got, want)
	}
	done, _ := patch[contract.BulkAnswer](t, stage, "/v1/runs", fmt.Sprintf(body, ""), 200)
	if got, want := results(done), tasks[1]+" changed, "+tasks[0]+" unchanged"; got != want || stage.Run(t, tasks[1]).Labels["env"] != "dev" {
		t.Errorf("got %s, want %s", got, want)
	}
	again := post[contract.RetryAccepted](t, stage, "/v1/runs/"+tasks[1]+"/retry", `{"labels":{"env":null,"try":"2"}}`, 202)
	if got := label.Text(stage.Run(t, again.TaskID).Labels); got != "team=data,try=2" {
		t.Errorf("got a retry with %s, want the changed labels", got)
	}
}

// TestLabelsAreProtected has requests that change no labels.
func TestLabelsAreProtected(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Failure(t, "no")
	one := "/v1/runs/" + task
	var many []string
	for i := range label.Most + 1 {
		many = append(many, fmt.Sprintf(`"k%d":""`, i))
	}
	for _, row := range []struct {
		path, body string
		status     int
		field      string
	}{
		{one, `{}`, 400, "labels"},
		{one, `{"labels":{}}`, 400, "labels"},
		{one, `{"labels":null}`, 400, "labels"},
		{one, `{"labels":{"a":1}}`, 400, "labels.a"},
		{one, `{"labels":{"a":{"b":"c"}}}`, 400, "labels.a"},
		{one, `{"labels":{"a":"1","a":"2"}}`, 400, "labels.a"},
		{one, `{"labels":{"a b":"1"}}`, 400, "labels.a b"},
		{one, `{"labels":{"<script>":"1"}}`, 400, "labels.<script>"},
		{one, `{"labels":{"<script>":null}}`, 400, "labels.<script>"},
		{one, `{"labels":{"a":"<b>"}}`, 400, "labels.a"},
		{one, `{"labels":{"a":"\u0000"}}`, 400, "labels.a"},
		{one, `{"labels":{"a":"\u202e"}}`, 400, "labels.a"},
		{one, `{"labels":{` + strings.Join(many, ",") + `}}`, 400, "labels"},
		{one, `{"state":"Completed","labels":{"a":"1"}}`, 400, "state"},
		{"/v1/runs/none", `{"labels":{"a":"1"}}`, 404, ""},
		{"/v1/runs", `{"labels":{"a":"1"}}`, 400, "filter"},
		{"/v1/runs", `{"filter":{},"labels":{"a":"1"}}`, 400, "filter"},
		{"/v1/runs", `{"filter":{"label":" "},"labels":{"a":"1"}}`, 400, "filter.label"},
		{"/v1/runs", `{"filter":{"label":"a=<b>"},"labels":{"a":"1"}}`, 400, "filter.label"},
		{"/v1/runs", `{"filter":{"label":"a"}}`, 400, "labels"},
		{"/v1/runs", `{"filter":{"label":"a"},"labels":{"a":"1"},"limit":101}`, 400, "limit"},
	} {
		p, _ := patch[contract.Problem](t, stage, row.path, row.body, row.status)
		if p.Field != row.field {
			t.Errorf("%s %.80s: got a problem of %q, want one of %q", row.path, row.body, p.Field, row.field)
		}
	}
	patch[contract.Problem](t, stage, one, `{"labels":{"a":"`+strings.Repeat("x", limit.JobDocument)+`"}}`, 400)
	apitest.Decoded[contract.Problem](t, stage, http.MethodPatch, one, `{"labels":{"a":"1"}}`, 415, "Content-Type", "text/plain")
	for _, query := range []string{"label=", "label=+", "label=a%3D%3Cb%3E", "label=a+in+(b", "label=" + strings.Repeat("a,", 40) + "a", "selector=a"} {
		p, _ := apitest.Decoded[contract.Problem](t, stage, http.MethodGet, "/v1/runs?"+query, "", 400)
		if name, _, _ := strings.Cut(query, "="); p.Field != name {
			t.Errorf("%.40s: got a problem of %q, want one of %s", query, p.Field, name)
		}
	}
	if r := stage.Run(t, task); len(r.Labels) > 0 {
		t.Errorf("got labels %v, want none", r.Labels)
	}
}
