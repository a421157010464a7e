package command_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

const jobFile = `id: nightly
image: registry.example.org/app:1
schedule: "*/30 * * * *"
constraints: {maxConcurrentRuns: 1}
actions: {onConstraintViolation: {type: wait, parameters: {limit: 90s}}}
`

// jobServer serves the routes of jobs and returns the environment of a command.
func jobServer(t *testing.T, change ...func(*apitest.Settings)) map[string]string {
	t.Helper()
	routes := func(s *app.System) []httpkit.Route { return jobs.Routes(s.Jobs, s.Queries, s.Explanations) }
	stage := apitest.New(t, apitest.NewParts(t), routes, change...)
	return map[string]string{"SORTIE_URL": stage.URL}
}

func written(t *testing.T, text string) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestApplyShowsWhatChanges(t *testing.T) {
	t.Parallel()
	env := jobServer(t)
	changed := strings.NewReplacer("app:1", "app:2", "limit: 90s", "limit: 2m").Replace(jobFile)
	for _, step := range []struct {
		document string
		more     []string
		want     string
	}{
		{jobFile, []string{"--dry-run"}, "would create nightly, version 1, next firing 2026-01-02 03:30:00 UTC\n  + actions.onConstraintViolation.parameters.limit: \"90s\"\n"},
		{jobFile, nil, "created nightly, version 1, next firing 2026-01-02 03:30:00 UTC\n  + actions."},
		{jobFile, nil, "unchanged nightly, version 1, next firing 2026-01-02 03:30:00 UTC\n"},
		{"# another form\n" + jobFile, []string{"--dry-run"}, "unchanged nightly, version 1, next firing 2026-01-02 03:30:00 UTC\n"},
		{changed, []string{"--dry-run"}, "would change nightly, version 2, next firing 2026-01-02 03:30:00 UTC\n"},
		{changed, nil, `changed nightly, version 2, next firing 2026-01-02 03:30:00 UTC
  ~ actions.onConstraintViolation.parameters.limit: "90s" -> "2m"
  ~ image: "registry.example.org/app:1" -> "registry.example.org/app:2"
`},
	} {
		got := sortie(t, env, "", append([]string{"jobs", "apply", "-f", written(t, step.document)}, step.more...)...)
		if got.code != 0 || !strings.HasPrefix(got.stdout, step.want) {
			t.Errorf("%v: got %+v, want %q", step.more, got, step.want)
		}
	}
	var result struct {
		Result  string
		Version int
		Changes []struct {
			Field         string
			Before, After any
		}
	}
	got := sortie(t, env, jobFile, "jobs", "apply", "-f", "-", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil || result.Result != "changed" || result.Version != 3 ||
		len(result.Changes) != 2 || result.Changes[0].Before != "2m" || result.Changes[0].After != "90s" {
		t.Errorf("got %+v, want two changes to version 3", got)
	}
}

func TestApplyNamesFileAndLine(t *testing.T) {
	t.Parallel()
	env := jobServer(t)
	local := written(t, "id: a\nimage: b\nlogs: all\nschdule: x\n")
	got := sortie(t, env, "", "jobs", "apply", "-f", local)
	for _, want := range []string{local + ":3: logs: unknown value \"all\"", local + ":4: schdule: unknown field"} {
		if got.code != 2 || !strings.Contains(got.stderr, want) {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
	remote := written(t, "id: a\nimage: b\nconstraints:\n  preRunHook: {url: \"https://10.0.0.1/\"}\n")
	for _, more := range [][]string{nil, {"--dry-run"}} {
		if got := sortie(t, env, "", append([]string{"jobs", "apply", "-f", remote}, more...)...); got.code != 2 || !strings.Contains(got.stderr, remote+":4: constraints.preRunHook.url: ") {
			t.Errorf("%v: got %+v, want a problem of the server with its line", more, got)
		}
	}
	if got := sortie(t, env, "", "jobs", "apply", "-f", filepath.Join(t.TempDir(), "none")); got.code == 0 {
		t.Errorf("got %+v for a missing file, want an error", got)
	}
}

// TestValidateNamesCircles checks files whose jobs come after each other, without a server.
func TestValidateNamesCircles(t *testing.T) {
	t.Parallel()
	all := written(t, "id: a\nimage: b\nafter: [c]\n---\nid: b\nimage: b\nafter: [elsewhere, a]\n---\nid: c\nimage: b\nafter:\n  - job: b\n    when: always\n---\nid: d\nimage: b\nafter: [c]\n")
	for _, command := range []string{"validate", "apply"} {
		got := sortie(t, nil, "", "jobs", command, all)
		for _, want := range []string{
			all + ":3: after.0: the jobs come after each other in a circle: a -> b -> c -> a; remove one",
			all + ":7: after.1: the jobs come after each other in a circle: b -> c -> a -> b; remove one",
			all + ":12: after.0: the jobs come after each other in a circle: c -> a -> b -> c; remove one",
		} {
			if got.code != 2 || !strings.Contains(got.stderr, want) {
				t.Errorf("%s: got %+v, want %q", command, got, want)
			}
		}
	}
	if got := sortie(t, nil, "", "jobs", "validate", written(t, "id: b\nimage: b\nafter: [elsewhere]\n")); got.code != 0 {
		t.Errorf("got %+v, want a job of another file to be ignored", got)
	}
}

// TestShowIsAJobFile applies the output of show.
func TestShowIsAJobFile(t *testing.T) {
	t.Parallel()
	env := jobServer(t)
	every, err := os.ReadFile("../../../shared/domain/job/testdata/every-field.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for id, document := range map[string]string{"nightly": jobFile, "import-orders": string(every)} {
		if got := sortie(t, env, document, "jobs", "apply", "-f", "-"); got.code != 0 {
			t.Fatalf("got %+v", got)
		}
		shown := sortie(t, env, "", "jobs", "show", id)
		if !strings.HasPrefix(shown.stdout, "# Version 1, of 2026-01-02") || !strings.Contains(shown.stdout, "# Next firing ") {
			t.Errorf("got %+v, want comments about version and schedule", shown)
		}
		if got := sortie(t, env, shown.stdout, "jobs", "apply", "-f", "-"); !strings.HasPrefix(got.stdout, "unchanged "+id) {
			t.Errorf("got %+v after applying %s, want no change", got, shown.stdout)
		}
	}
}

func TestJobCommands(t *testing.T) {
	t.Parallel()
	env := jobServer(t)
	if got := sortie(t, env, jobFile, "jobs", "apply", "-f", "-"); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	for _, step := range []struct {
		args string
		code int
		want string // a regular expression
	}{
		{"jobs list", 0, `^JOB +SCHEDULE +NEXT +VERSION\nnightly  \*/30 \* \* \* \*  2026-01-02 03:30:00 UTC +1\n$`},
		{"jobs pause nightly", 0, `^nightly: Paused since 2026-01-02`},
		{"jobs list", 0, `paused +1\n$`},
		{"jobs show nightly", 0, `\n# Paused since 2026-01-02`},
		{"jobs clear nightly", 0, `^nightly: Paused since 2026-01-02`},
		{"jobs resume nightly", 0, `^nightly: Next firing 2026-01-02 03:30:00 UTC\n$`},
		{"jobs clear nightly", 0, `^nightly: Next firing 2026-01-02 03:30:00 UTC\n$`},
		{"jobs clear nightly --json", 0, `"version": 1`},
		{"jobs clear", 2, ``},
		{"jobs run nightly --param A=1 --param B=x=y", 0, `^job_[0-9A-Z]{26}\n$`},
		{"jobs run nightly --param A=1,B=2 --at 2026-01-04T00:00:00Z", 0, `^nightly:20260104T000000Z\n$`},
		{"jobs history nightly --json", 0, `"A": "1,B=2"`},
		{"jobs run nightly --param A", 2, ``},
		{"jobs run nightly --at 2026-01-03T00:00:00Z", 0, `^nightly:20260103T000000Z\n$`},
		{"jobs run nightly --at 2026-01-03T00:00:00Z --json", 0, `"runId": "nightly:20260103T000000Z"`},
		{"jobs history nightly", 0, `nightly:20260103T000000Z +PreRun +manual +1 `},
		{"jobs history nightly --json", 0, `"jobId": "nightly"`},
		{"jobs backfill nightly --from 2026-01-02T00:00:00Z --to 2026-01-02T03:04:00Z", 2, `^nightly-20\d{6}T\d{6}Z: 7 times of job nightly, from 2026-01-02T00:00:00Z to 2026-01-02T03:00:00Z\n$`},
		{"jobs backfill nightly --from 2026-01-02T00:30:00Z --to 2026-01-02T01:30:00Z --name b.1 --max-parallel 2 --yes", 0, `\n2 new runs, 0 existing\..* -l backfill=b\.1\n$`},
		{"jobs backfill nightly --from 2026-01-02T00:00:00Z --to 2026-01-02T03:04:00Z --order newest --json --yes", 0, `"new": 5,\n  "existing": 2\n`},
		{"jobs history nightly --json", 0, `"backfill": "b.1"`},
		{"jobs backfill nightly --from 2026-01-02T00:00:00Z --name a/b --yes", 2, ``},
		{"jobs backfill nightly --from 2026-01-03T00:00:00Z --to 2026-01-03T00:00:00Z", 2, ``},
		{"jobs backfill nightly", 2, ``},
		{"jobs backfill nightly --from 2026-01-02T00:00:00Z --order up", 2, ``},
		{"jobs backfill nightly --from 2026-01-02T00:00:00Z --max-parallel 0", 2, ``},
		{"jobs backfill nightly --from 1990-01-02T00:00:00Z", 2, ``},
		{"jobs show nightly --version 2", 4, ``},
		{"jobs run nightly --at tomorrow", 2, ``},
		{"jobs delete nightly", 0, `^deleted nightly\n$`},
		{"jobs clear nightly", 4, ``},
		{"jobs show nightly", 4, ``},
		{"jobs run nightly", 4, ``},
	} {
		got := sortie(t, env, "", strings.Fields(step.args)...)
		if named := strings.Contains(got.stderr, `no such job: "nightly"`); step.code == 4 && !strings.Contains(step.args, "version") && !named {
			t.Errorf("%s: got %q on standard error, want the job", step.args, got.stderr)
		}
		if got.code != step.code || !regexp.MustCompile(step.want).MatchString(got.stdout) {
			t.Errorf("%s: got %+v, want exit code %d and %s", step.args, got, step.code, step.want)
		}
	}
}

func TestHistoryShowsFirings(t *testing.T) {
	t.Parallel()
	env := responses(t, map[string]func(http.ResponseWriter){
		"GET /v1/jobs/nightly/runs?limit=20": jsonOf(200, `{"runs":[
			{"runId":"nightly:4","state":"Running","trigger":"manual","jobVersion":2},
			{"runId":"nightly:3","state":"Completed","skipped":true,"trigger":"schedule","jobVersion":1,"missed":{"reason":"missed","count":12,"until":"2026-01-03T00:00:00Z"},"endedAt":"2026-01-03T00:00:00Z"},
			{"runId":"nightly:2","state":"Completed","skipped":true,"trigger":"schedule","jobVersion":1,"violations":[{"constraint":"maxConcurrentRuns"}],"endedAt":"2026-01-03T00:00:00Z"},
			{"runId":"nightly:1","state":"Failed","trigger":"catch_up","jobVersion":1,"fault":{"code":"PROGRAM_EXIT"},"endedAt":"2026-01-03T00:00:00Z","measured":{"totalSeconds":62.5,"preRunSeconds":60}}]}`),
		"GET /v1/jobs/nightly": jsonOf(200, `{"id":"nightly","image":"a","version":2,"nextAt":"2026-01-04T02:00:00Z"}`),
	})
	got := sortie(t, env, "", "jobs", "history", "nightly")
	for _, want := range []string{
		`nightly:4 +Running +manual +2 +\d+d\n`, `nightly:3 +Completed \(skipped\) +schedule +1 +\d+d +missed, 12 firings until 2026-01-03 00:00:00 UTC\n`,
		`nightly:2 +Completed \(skipped\) +schedule +1 +\d+d +maxConcurrentRuns\n`, `nightly:1 +Failed +catch_up +1 +\d+d +2.5 s +PROGRAM_EXIT\n`,
	} {
		if got.code != 0 || !regexp.MustCompile(want).MatchString(got.stdout) {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
	if want := "13 Completed (skipped), 1 Failed, 1 Running. Next firing 2026-01-04 02:00:00 UTC.\n"; got.stderr != want {
		t.Errorf("got %q, want %q", got.stderr, want)
	}
	if got := sortie(t, env, "", "jobs", "history", "nightly", "--json"); !strings.Contains(got.stdout, `"nextAt": "2026-01-04T02:00:00Z"`) || !strings.Contains(got.stdout, `"count": 12`) {
		t.Errorf("got %+v, want the runs and the next firing", got)
	}
}

// TestSimulateShowsTheGraph simulates a job with those that come after it.
func TestSimulateShowsTheGraph(t *testing.T) {
	t.Parallel()
	run := func(seconds string) func(http.ResponseWriter) {
		return jsonOf(200, `{"runs":[{"runId":"a","endedAt":"2026-01-03T00:00:00Z","measured":{"totalSeconds":`+seconds+`,"preRunSeconds":1}},{"runId":"b","skipped":true,"endedAt":"2026-01-03T00:00:00Z","measured":{"totalSeconds":9}}]}`)
	}
	env := responses(t, map[string]func(http.ResponseWriter){
		"GET /v1/jobs/load/explain": jsonOf(200, `{"jobId":"load","reason":"next_firing","message":"m","skipped":[],"graph":[
			{"jobId":"other","paused":false,"after":[]},{"jobId":"load","paused":false,"after":[]},
			{"jobId":"clean","paused":false,"after":[{"jobId":"load","when":"success"}]},{"jobId":"alert","paused":false,"after":[{"jobId":"load","when":"failure"}]},
			{"jobId":"report","paused":false,"after":[{"jobId":"clean","when":"success"},{"jobId":"alert","when":"always"},{"jobId":"other","when":"success"}]}]}`),
		"GET /v1/jobs/other/runs?limit=20": run("100"), "GET /v1/jobs/load/runs?limit=20": run("61"), "GET /v1/jobs/clean/runs?limit=20": run("121"),
		"GET /v1/jobs/alert/runs?limit=20": jsonOf(200, `{"runs":[]}`), "GET /v1/jobs/report/runs?limit=20": run("11"),
	})
	file := written(t, "id: load\nimage: b\nschedule: \"0 2 * * *\"\n")
	args := []string{"jobs", "simulate", file, "--graph", "--from", "2027-01-01T00:00:00Z", "--limit", "1"}
	got := sortie(t, env, "", args...)
	for _, want := range []string{
		"load at 02:00:00, takes 1 min 0 s in one run, critical", "clean at 02:01:00, takes 2 min 0 s in one run, critical",
		"alert at 02:01:00, no run measured", "report at 02:03:00, takes 10.0 s in one run, critical",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
	if strings.Contains(got.stdout, "other") {
		t.Errorf("got %s, want only jobs that come after the job", got.stdout)
	}
	got = sortie(t, env, "", append(args, "--json")...)
	if want := `{"jobId":"report","after":["clean","alert","other"],"startsAt":"2027-01-01T02:03:00Z","endsAt":"2027-01-01T02:03:10Z","critical":true,"takesSeconds":10,"measured":1}]}`; !strings.Contains(got.stdout, want) {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// TestSimulateShowsOutages simulates a daily job during two outages.
func TestSimulateShowsOutages(t *testing.T) {
	t.Parallel()
	free := written(t, "id: a\nimage: b\nschedule: \"0 2 * * *\"\n")
	args := []string{
		"jobs", "simulate", free, "--from", "2027-01-01T12:00:00Z", "--limit", "4",
		"--down", "2027-01-02T01:00:00Z..2027-01-04T02:03:00Z", "--down", "2027-01-05T01:59:00Z..2027-01-05T02:06:00Z",
	}
	got := sortie(t, nil, "", args...)
	for _, want := range []string{
		"2027-01-02T02:00:00Z Sat 2027-01-02 02:00:00 UTC skip", "2 firings until 2027-01-03T02:00:00Z were skipped: missed, since a later one was due too or it was too late",
		"2027-01-04T02:00:00Z Mon 2027-01-04 02:00:00 UTC run, 3 min 0 s late", "2027-01-05T02:00:00Z Tue 2027-01-05 02:00:00 UTC skip",
		"2027-01-06T02:00:00Z Wed 2027-01-06 02:00:00 UTC run",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got.stdout), " "), want) {
			t.Errorf("got %s, want %q", got.stdout, want)
		}
	}
	lines := strings.Split(sortie(t, nil, "", append(args, "--json")...).stdout, "\n")
	if want := `"firedAt":"2027-01-04T02:03:00Z","trigger":"schedule","count":2,"until":"2027-01-03T02:00:00Z"}`; !strings.HasSuffix(lines[0], want) {
		t.Errorf("got %s, want %s", lines[0], want)
	}
}

func TestSimulateIsOffline(t *testing.T) {
	t.Parallel()
	name := written(t, jobFile)
	args := []string{"jobs", "simulate", name, "--from", "2027-01-01T00:00:00Z", "--until", "2027-01-01T01:00:00Z", "--json"}
	got := sortie(t, nil, "", args...)
	want := `{"scheduledAt":"2027-01-01T00:30:00Z","localTime":"2027-01-01T00:30:00Z","decision":"depends","reasons":["maxConcurrentRuns: starts if no other run of the job is under way; otherwise it waits for at most 1m30s"],"firedAt":"2027-01-01T00:30:00Z","trigger":"schedule"}
{"scheduledAt":"2027-01-01T01:00:00Z","localTime":"2027-01-01T01:00:00Z","decision":"depends","reasons":["maxConcurrentRuns: starts if no other run of the job is under way; otherwise it waits for at most 1m30s"],"firedAt":"2027-01-01T01:00:00Z","trigger":"schedule"}
`
	if got.code != 0 || got.stdout != want {
		t.Errorf("got %+v, want %s", got, want)
	}
	free := written(t, "id: a\nimage: b\nschedule: \"0 2 * * *\"\ntimeZone: Europe/Berlin\n")
	got = sortie(t, nil, "", "jobs", "simulate", free, "--from", "2027-01-01T00:00:00Z", "--limit", "1", "--json")
	if want := `{"scheduledAt":"2027-01-01T01:00:00Z","localTime":"2027-01-01T02:00:00+01:00","decision":"run","reasons":[],"firedAt":"2027-01-01T01:00:00Z","trigger":"schedule"}` + "\n"; got.stdout != want {
		t.Errorf("got %+v, want %s", got, want)
	}
	got = sortie(t, nil, "", "jobs", "simulate", free, "--from", "2027-01-01T00:00:00Z", "--limit", "2")
	if want := "2027-01-02T01:00:00Z  Sat 2027-01-02 02:00:00 CET   run\n"; got.code != 0 || !strings.Contains(strings.Join(strings.Fields(got.stdout), " "), strings.Join(strings.Fields(want), " ")) {
		t.Errorf("got %+v, want %s", got, want)
	}
	for _, wrong := range [][]string{
		{"--limit", "0"},
		{"--from", "x"},
		{"--from", "2027-01-02T00:00:00Z", "--until", "2027-01-01T00:00:00Z"},
		{"--down", "2027-01-02T00:00:00Z"},
		{"--down", "2027-01-02..2027-01-03"},
		{"--down", "2027-01-02T00:00:00Z..2027-01-02T00:00:00Z"},
	} {
		if got := sortie(t, nil, "", append([]string{"jobs", "simulate", name}, wrong...)...); got.code != 2 {
			t.Errorf("%v: got %+v, want exit code 2", wrong, got)
		}
	}
	if got := sortie(t, nil, "id: a\nimage: b\n", "jobs", "simulate", "-"); got.code != 2 || !strings.Contains(got.stderr, "no schedule") {
		t.Errorf("got %+v without a schedule, want exit code 2", got)
	}
}

func TestSimulateWarnsOfLargeSteps(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte("id: a\nimage: a\nschedule: 0 */25 * * *\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := sortie(t, nil, "", "jobs", "simulate", file, "--limit", "1")
	if got.code != 0 || !strings.Contains(got.stderr, file+`: warning: schedule: position 3: the step of "*/25" is larger than the range 0 to 23 of the hour`) {
		t.Errorf("got %+v, want a warning", got)
	}
}
