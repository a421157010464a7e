package command_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestExitCodes checks the table of exit codes that the help of client commands
// shows.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"message":"Route not found"}`, http.StatusNotFound)
	}))
	t.Cleanup(foreign.Close)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html>"))
	}))
	t.Cleanup(page.Close)
	unknown := contract.Problem{Status: 404, Code: "NOT_FOUND", Detail: "Task not found"}
	queued := responses(t, map[string]func(http.ResponseWriter){
		"GET /v1/tasks/" + taskID + "/logs": jsonOf(404, `{"status":404,"code":"NOT_FOUND","detail":"the task has no attempt 0"}`),
		"GET /status/" + taskID:             jsonOf(200, `{"task_id":"`+taskID+`","status":"processing","state":"Pending"}`),
	})
	for name, row := range map[string]struct {
		env  map[string]string
		args string
		code int
		says string
	}{
		"unknown command":          {nil, "exprot", 2, "did you mean export?"},
		"unknown command and flag": {nil, "exprot mods --pi x", 2, "did you mean export?"},
		"unknown subcommand":       {nil, "keys rotat", 2, `"keys rotat" (did you mean rotate?)`},
		"other subcommand":         {nil, "keys frobnicate", 2, `unknown command "keys frobnicate", want `},
		"unknown flag":             {nil, "export mods --recursiv", 2, "did you mean --recursive?"},
		"flag of other servers":    {nil, "dev --port 9000", 2, "unknown flag --port, did you mean --addr (address of the API; port 0 is any free port)?"},
		"flag before its command":  {nil, "--dry-run jobs apply -f x", 2, "unknown flag --dry-run, want it after a command that has it: "},
		"data folder of a client":  {nil, "--data x jobs apply -f x", 2, "this one finds the servers of this machine, or takes --url and --token-file"},
		"data folder of a group":   {nil, "jobs --data x list", 2, "unknown flag --data, want it after a command that has it: backup, demo, dev, "},
		"ls of shells":             {nil, "ls", 2, "did you mean runs or jobs list?"},
		"ps of containers":         {nil, "ps", 2, "did you mean runs?"},
		"ui":                       {nil, "ui", 2, "did you mean open?"},
		"login":                    {nil, "login", 2, "did you mean tokens add, whose token SORTIE_TOKEN sends?"},
		"missing argument":         {nil, "status", 2, "missing RUN"},
		"extra argument":           {nil, "status a b", 2, `unexpected argument "b", want sortie status RUN`},
		"no run of a variable":     {nil, "download ", 2, "missing RUN"},
		"no file to apply":         {nil, "jobs apply --dry-run", 2, "missing FILE"},
		"file without its flag":    {nil, "jobs apply no-such.json", 2, "no-such.json does not exist"},
		"no file to check":         {nil, "jobs validate -f no-such.json", 2, "no-such.json does not exist"},
		"missing flag":             {nil, "export mods", 2, "missing --pi"},
		"malformed number":         {nil, "export mods --max-depth x", 2, `--max-depth: malformed value "x", want a whole number`},
		"malformed large number":   {nil, "budgets set tenant --tokens x", 2, `--tokens: malformed value "x", want a whole number`},
		"malformed fraction":       {nil, "budgets set tenant --cost x", 2, `--cost: malformed value "x", want a number`},
		"malformed duration":       {nil, "status x --timeout 5", 2, "want a duration such as 90s"},
		"missing value":            {nil, "export mods --pi", 2, "--pi: missing value"},
		"flag with two values":     {nil, "runs --limit 1 --limit 2", 2, `--limit: given twice, as "1" and "2", want one value`},
		"short flag twice":         {nil, "download x -o a --output b", 2, `--output: given twice, as "a" and "b", want one value`},
		"two addresses":            {nil, "jobs list --url http://a --url http://b", 2, `--url: given twice, as "http://a" and "http://b", want one value`},
		"two pools":                {nil, "pools apply -f a -f b", 2, `--file: given twice, as "a" and "b", want one value`},
		"two data folders":         {nil, "dev --data a --data b", 2, `--data: given twice, as "a" and "b", want one value`},
		"unknown state":            {nil, "runs --state Runnin", 2, "did you mean Running?"},
		"unknown fault":            {nil, "collection serve --generate 3 --fault mising=1", 2, "did you mean missing?"},
		"unknown scenario":         {nil, "worker check --only wor -- true", 2, "did you mean work?"},
		"unknown flag of check":    {nil, "worker check --intervall 1s -- true", 2, "did you mean --interval?"},
		"unknown log format":       {nil, "dev --log-format jsno", 2, "did you mean json?"},
		"unknown format":           {(&api{refuse: contract.Problem{Status: 404, Code: "NOT_FOUND", Detail: "unknown format"}}).start(t), "export mod --pi " + pi, 2, "did you mean mods?"},
		"malformed URL":            {nil, "runs --url http://127.0.0.1:x", 2, "malformed server URL"},
		"another HTTP server":      {map[string]string{"SORTIE_URL": foreign.URL}, "status " + taskID, 3, "is not a Sortie server"},
		"another server's page":    {map[string]string{"SORTIE_URL": page.URL}, "runs", 3, "is not a Sortie server"},
		"another server, export":   {map[string]string{"SORTIE_URL": foreign.URL}, "export mods --pi " + pi, 3, "is not a Sortie server"},
		"another server, logs":     {map[string]string{"SORTIE_URL": foreign.URL}, "logs " + taskID, 3, "is not a Sortie server"},
		"address without a scheme": {nil, "runs --url 127.0.0.1:1", 3, "cannot reach http://127.0.0.1:1: connection refused"},
		"unknown run":              {(&api{refuse: unknown}).start(t), "logs " + taskID, 4, "no such run, or it has expired"},
		"logs of a queued run":     {queued, "logs " + taskID, 5, "has no log yet: it is Pending"},
		"cancelled run":            {(&api{status: cancelled()}).start(t), "export mods --pi " + pi, 7, "was cancelled"},
		"cancelled run, status":    {(&api{status: cancelled()}).start(t), "status --wait " + taskID, 7, "was cancelled"},
		"skipped run":              {(&api{status: skipped()}).start(t), "export mods --pi " + pi, 8, "was skipped: maxConcurrentRuns: 1 of 1 slots"},
		"skipped run, status":      {(&api{status: skipped()}).start(t), "status --wait " + taskID, 8, "sortie explain " + taskID},
		"skipped run, download":    {(&api{status: skipped(), stays: true}).start(t), "download " + taskID, 8, "sortie runs --skipped"},
		"cancelled run, download":  {(&api{status: cancelled(), stays: true}).start(t), "download " + taskID, 7, "sortie retry " + taskID},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sortie(t, row.env, "", strings.Split(row.args, " ")...)
			if got.code != row.code || !strings.Contains(got.stderr, row.says) {
				t.Errorf("got %d and\n%s\nwant %d and %q", got.code, got.stderr, row.code, row.says)
			}
			if strings.Contains(got.stderr, "the run failed") {
				t.Errorf("got %q, want no failure", got.stderr)
			}
		})
	}
}

// TestHintOfAProgramIsItsLog checks the hints for a program that does not call Sortie, and for
// one that failed.
func TestHintOfAProgramIsItsLog(t *testing.T) {
	t.Parallel()
	for code, more := range map[string]string{"WORKER_LOST": "sortie-exec", "PROGRAM_EXIT": "what the program wrote"} {
		lost := failed()
		lost.Error, lost.ErrorCode, lost.ErrorCategory = "the worker exited with code 0 before it reported", code, "INFRASTRUCTURE"
		got := sortie(t, (&api{status: lost}).start(t), "", "export", "mods", "--pi", pi)
		for _, want := range []string{code, "sortie logs " + taskID, more} {
			if got.code != 1 || !strings.Contains(got.stderr, want) {
				t.Errorf("got %d and\n%s\nwant %q", got.code, got.stderr, want)
			}
		}
	}
}

func TestHelpHasServerFlagsOnlyWhereTheyApply(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{
		"status": true, "runs": true, "export": true, "logs": true, "dev": false, "backup": false, "asl validate": false, "worker check": false, "version": false,
	} {
		got := sortie(t, nil, "", append(strings.Fields(args), "--help")...)
		if strings.Contains(got.stdout, "--url") != want || strings.Contains(got.stdout, "  130  interrupted") != want {
			t.Errorf("%s --help: want --url and exit codes: %v, got\n%s", args, want, got.stdout)
		}
	}
}

func TestHelpBeginsWithADescription(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"sessions": "Look at the sessions of inference runs", "sessions show": "Show what a session has left\n\nExit codes:", "budgets set": "Limit what the runs",
	} {
		if got := sortie(t, nil, "", append(strings.Fields(args), "--help")...); !strings.HasPrefix(got.stdout, want) {
			t.Errorf("%s --help: got\n%s, want %q first", args, got.stdout, want)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	t.Parallel()
	for flag, command := range map[string]string{"--version": "version", "-v": "version", "--version --json": "version --json"} {
		got, want := sortie(t, nil, "", strings.Fields(flag)...), sortie(t, nil, "", strings.Fields(command)...)
		if got.code != 0 || got.stdout != want.stdout || !strings.Contains(got.stdout, runtime.Version()) {
			t.Errorf("%s: got %q, want %q", flag, got.stdout, want.stdout)
		}
	}
}

func TestCompletions(t *testing.T) {
	t.Parallel()
	env := (&api{}).start(t)
	for args, want := range map[string]string{
		"logs ":                     taskID + "\tFailed, mods of " + pi,
		"status ":                   taskID,
		"export ":                   "marcxml",
		"runs --format ":            "wide",
		"runs --state ":             "Terminating",
		"collection serve --fault ": "missing=",
		"worker check --only ":      "work",
		"worker check --only work,": "work,cancel",
		"dev --log-format ":         "human",
	} {
		words := strings.Split(args, " ")
		got := sortie(t, env, "", append([]string{"__complete"}, words...)...)
		if !strings.Contains("\n"+got.stdout, "\n"+want) {
			t.Errorf("%q: got %q, want %q", args, got.stdout, want)
		}
	}
}

// TestCompletionsOfJobsRunsAndTypes checks arguments and flags that name what the server has.
func TestCompletionsOfJobsRunsAndTypes(t *testing.T) {
	t.Parallel()
	env := jobServer(t)
	if got := sortie(t, env, jobFile, "jobs", "apply", "-f", "-"); got.code != 0 {
		t.Fatal(got)
	}
	for args, want := range map[string]string{
		"jobs run ":                      "nightly\t*/30 * * * *\n",
		"jobs pause ":                    "nightly\t",
		"jobs show ":                     "nightly\t",
		"runs --job ":                    "nightly\t",
		"runs cancel --job ":             "nightly\t",
		"events list --job ":             "nightly\t",
		"jobs run nightly --priority ":   "batch\n",
		"jobs list ":                     ":4\n",
		"events tail --type job.":        "job.failed\n",
		"webhooks create x --type job.":  "job.failed\n",
		"events list --type job.failed,": "job.failed,job.completed\n",
	} {
		got := sortie(t, env, "", append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if !strings.Contains("\n"+got.stdout, "\n"+want) {
			t.Errorf("%q: got %q, want %q", args, got.stdout, want)
		}
	}
	for shell, want := range map[string]string{"bash": "__start_sortie", "zsh": "#compdef sortie", "fish": "complete -c sortie"} {
		if got := sortie(t, nil, "", "completion", shell); got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: got %d, want a script with %q", shell, got.code, want)
		}
	}
}

// TestCompletionsOfOtherNames checks arguments and flags that name pools, models, webhooks and runs.
func TestCompletionsOfOtherNames(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"/v1/tasks":          `{"tasks": [{"taskId": "job_1", "state": "Completed"}]}`,
		"/v1/pools":          `{"pools": [{"id": "gpu", "runner": "kubernetes"}]}`,
		"/v1/catalog/models": `{"models": [{"id": "tiny", "state": "active"}]}`,
		"/v1/webhooks":       `{"webhooks": [{"id": "wh_1", "url": "https://example.org/hook"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, answers[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	for args, want := range map[string]string{
		"jobs run nightly --items-from ": "job_1\tCompleted",
		"pools drain ":                   "gpu\tkubernetes\n",
		"runs --pool ":                   "gpu\t",
		"models retire ":                 "tiny\tactive\n",
		"webhooks test ":                 "wh_1\thttps://example.org/hook\n",
	} {
		got := sortie(t, map[string]string{"SORTIE_URL": server.URL}, "", append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if !strings.HasPrefix(got.stdout, want) {
			t.Errorf("%q: got %q, want %q", args, got.stdout, want)
		}
	}
}

func TestCompletionsSayWhatRan(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"tasks": [
			{"taskId": "job_1", "state": "Completed", "program": {"image": "exec:/bin/echo", "command": ["hello"]}},
			{"taskId": "job_2", "state": "Running", "jobId": "nightly", "program": {"image": "exec:/bin/true"}},
			{"taskId": "inf_1", "state": "Failed", "inference": {"model": "tiny"}}]}`)
	}))
	t.Cleanup(server.Close)
	got := sortie(t, map[string]string{"SORTIE_URL": server.URL}, "", "__complete", "logs", "")
	for _, want := range []string{"job_1\tCompleted, exec:/bin/echo hello, ", "job_2\tRunning, job nightly, ", "inf_1\tFailed, model tiny, "} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("got %q, want %q", got.stdout, want)
		}
	}
}

func TestRunsFits80Columns(t *testing.T) {
	t.Parallel()
	env := (&api{}).start(t)
	got := sortie(t, env, "", "runs", "--all")
	for line := range strings.Lines(got.stdout) {
		if runewidth.StringWidth(line) > 81 {
			t.Errorf("got a line of %d columns, want at most 80: %q", runewidth.StringWidth(line)-1, line)
		}
	}
	wide := sortie(t, env, "", "runs", "--format", "wide")
	for _, want := range []string{"nightly", "1 min 30 s  WORKER_LOST", pi} {
		if !strings.Contains(wide.stdout, want) {
			t.Errorf("got\n%s\nwant %q", wide.stdout, want)
		}
	}
}

func TestRunsFilters(t *testing.T) {
	t.Parallel()
	env := (&api{}).start(t)
	for args, want := range map[string]int{
		"--batch nightly": 2, "--batch other": 0, "--pi " + pi: 2, "--pi x": 0, "--batch nightly --limit 1": 1, "--since 1s": 0, "--since 1000000h": 2,
	} {
		got := sortie(t, env, "", append([]string{"runs"}, strings.Fields(args)...)...)
		if n := strings.Count(got.stdout, taskID); got.code != 0 || n != want {
			t.Errorf("%s: got %d runs, want %d: %+v", args, n, want, got)
		}
	}
}

// TestLogsParts selects lines of a log by number and time.
func TestLogsParts(t *testing.T) {
	t.Parallel()
	const log = "start\n2026-11-21T09:00:00Z one\n  more of one\ntime=2026-11-21T10:00:00.5+01:00 level=INFO two\n2026-11-21T11:00:00Z three\n"
	const path = "GET /v1/tasks/" + taskID + "/logs"
	env := responses(t, map[string]func(http.ResponseWriter){path: logOf(log, "1", "true")})
	plain := responses(t, map[string]func(http.ResponseWriter){path: logOf("no time\n", "1", "true")})
	for args, want := range map[string]string{
		"--tail 1":                       "2026-11-21T11:00:00Z three\n",
		"--tail 0":                       "",
		"--tail 99":                      log,
		"--since 2026-11-21T10:30:00Z":   "2026-11-21T11:00:00Z three\n",
		"--since 2026-11-21T09:00:00.2Z": "time=2026-11-21T10:00:00.5+01:00 level=INFO two\n2026-11-21T11:00:00Z three\n",
		"--since 2030-01-01T00:00:00Z":   "",
		"--since 1000000h --tail 1":      "2026-11-21T11:00:00Z three\n",
	} {
		got := sortie(t, env, "", append([]string{"logs", taskID}, strings.Fields(args)...)...)
		if got.code != 0 || got.stdout != want {
			t.Errorf("%s: got %+v, want %q", args, got, want)
		}
	}
	const timed = `{"attempt":1,"stream":"stdout","data":"MQoy","at":"2026-11-21T09:00:00.25Z","next":3}
{"attempt":1,"stream":"stderr","data":"IG9uCjM=","at":"2026-11-21T11:00:01+01:00","next":8}
{"attempt":1,"stream":"stdout","data":"Cjs=","next":10}
`
	env = responses(t, map[string]func(http.ResponseWriter){path: func(w http.ResponseWriter) { _, _ = w.Write([]byte(timed)) }})
	for args, want := range map[string]string{
		"":             "1\n2 on\n3\n;",
		"--timestamps": "2026-11-21T09:00:00.250Z 1\n2026-11-21T09:00:00.250Z 2 on\n2026-11-21T10:00:01.000Z 3\n- ;",
		"--timestamps --since 2026-11-21T09:00:01Z":          "2026-11-21T10:00:01.000Z 3\n- ;",
		"--timestamps --since 2026-11-21T09:00:01Z --tail 1": "- ;",
	} {
		got := sortie(t, env, "", append([]string{"logs", taskID}, strings.Fields(args)...)...)
		if got.code != 0 || got.stdout != want {
			t.Errorf("%s: got %+v, want %q", args, got, want)
		}
	}
	if got := sortie(t, plain, "", "logs", taskID, "--since", "1h"); got.code != 2 || !strings.Contains(got.stderr, "no line with an RFC 3339 time") {
		t.Errorf("log without times: got %+v", got)
	}
}
