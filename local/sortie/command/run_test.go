package command_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestRunRefusesAWrongCommandLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte("id: a\nimage: b\nschedul: c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ args, want string }{
		"no image":              {"run", "missing IMAGE"},
		"no image before --":    {"run -- a", "missing IMAGE"},
		"an image and a file":   {"run a -f " + file, "the definition of --file has the image"},
		"a malformed variable":  {"run a --env A", "want NAME=VALUE"},
		"an unknown program":    {"run exec:no-such-program-here", "cannot find the program"},
		"no file":               {"run -f no-such-file", "does not exist"},
		"a field of the file":   {"run -f " + file, "job.yaml:3: schedul"},
		"no input":              {"run a --input no-such-file", "does not exist"},
		"output without a path": {"run a -o -", "missing --output-path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sortie(t, map[string]string{"SORTIE_URL": "http://127.0.0.1:1"}, "", strings.Fields(row.args)...)
			if got.code != 2 || !strings.Contains(got.stderr, row.want) {
				t.Errorf("got %+v, want exit code 2 and %q", got, row.want)
			}
		})
	}
}

// The request has the fields of the command line, and the input in base64.
func TestRunSendsTheDefinition(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte("id: a\nimage: b\nschedule: '@daily'\ncommand: [c]\ninput: text\nenv: {LEVEL: info, OLD: x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	constrained, exported, limited := filepath.Join(folder, "constrained.yaml"), filepath.Join(folder, "export.yaml"), filepath.Join(folder, "limited.yaml")
	started := filepath.Join(folder, "started.yaml")
	for name, text := range map[string]string{
		constrained: "id: a\nimage: b\nschedule: '@daily'\nconstraints: {maxConcurrentRuns: 1, catchUp: true, catchUpWindow: 6h, maxAllowedRunTime: 1h}\n" +
			"actions: {onConstraintViolation: {type: wait}, onViolationOf: {catchUpWindow: {type: skip}}, onSuccess: {type: trigger_job, parameters: {jobId: c}}}\n",
		limited:  "id: a\nimage: b\npolicy: {timeLimitSeconds: 60, cancelGraceSeconds: 9}\nretryConfig: {maxRetries: 4, initialDelay: 5s}\n",
		started:  "id: a\nimage: b\nschedule: '@daily'\nmissed: all\nstartingDeadline: 1h\nretention: {newest: 3, logs: 48h}\n",
		exported: "id: a\nexport: {format: dc, pi: " + pi + "}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		args        []string
		stdin, want string
	}{
		"a job with constraints on its runs": {
			[]string{"run", "-f", constrained, "--detach"},
			"",
			`{"image":"b","constraints":{"maxAllowedRunTime":"1h"},"actions":{"onSuccess":{"type":"trigger_job","parameters":{"jobId":"c"}}}}`,
		},
		"a job that a schedule starts": {
			[]string{"run", "-f", started, "--detach"},
			"",
			`{"image":"b","retention":{"logs":"48h"}}`,
		},
		"an export": {
			[]string{"run", "-f", exported, "-o", "out.xml", "--detach"},
			"",
			`{"export":{"format":"dc","pi":"` + pi + `"}}`,
		},
		"an image": {
			[]string{"run", "a", "--env", "A=b=c", "--retries", "2", "--output-path", "out/x", "--detach", "--", "-v"},
			"",
			`{"image":"a","command":["-v"],"env":{"A":"b=c"},"output":{"path":"out/x"},"retryConfig":{"maxRetries":2}}`,
		},
		"a file": {
			[]string{"run", "-f", file, "--env", "LEVEL=warn", "--detach"},
			"",
			`{"image":"b","command":["c"],"env":{"LEVEL":"warn","OLD":"x"},"input":"` + base64.StdEncoding.EncodeToString([]byte("text")) + `"}`,
		},
		"flags over a file": {
			[]string{"run", "-f", limited, "--retries", "1", "--timeout", "30s", "--detach"},
			"",
			`{"image":"b","constraints":{"maxAllowedRunTime":"30s"},"retryConfig":{"maxRetries":1,"initialDelay":"5s"},"policy":{"cancelGraceSeconds":9}}`,
		},
		"standard input": {
			[]string{"run", "a", "--input", "-", "-o", "dir/report.csv", "--detach"},
			"\x00\xff",
			`{"image":"a","output":{"path":"report.csv"},"retryConfig":{"maxRetries":0},"input":"AP8="}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &api{}
			if got := sortie(t, a.start(t), row.stdin, row.args...); got.code != 0 {
				t.Fatalf("got %+v, want exit code 0", got)
			}
			if got, want := compact(t, a.body), compact(t, row.want); got != want || a.key == "" {
				t.Errorf("got request %s with key %q, want %s and a key", got, a.key, want)
			}
		})
	}
}

// What only a stored job has is left out, and named.
func TestRunNamesWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "job.yaml")
	for text, want := range map[string]string{
		"{id: a, image: b}": "",
		"{id: a, image: b, sensor: {cloudEvent: {}}, retention: {newest: 3}}":                                                                  "retention.newest, sensor",
		"{id: a, image: b, schedule: '@daily', missed: all, startingDeadline: 1h, constraints: {maxConcurrentRuns: 1, maxAllowedRunTime: 1h}}": "constraints.maxConcurrentRuns, missed, schedule, startingDeadline",
		"{id: a, image: b, after: [c]}": "after",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := sortie(t, (&api{}).start(t), "", "run", "-f", file, "--detach")
		if want != "" {
			want = file + ": without meaning for a single run: " + want + "\n"
		}
		if got.code != 0 || !strings.HasPrefix(got.stderr, want) || want == "" && strings.Contains(got.stderr, "meaning") {
			t.Errorf("%s: got %+v, want %q", text, got, want)
		}
	}
}

// The user has no document for a definition from the command line, so errors name no line.
func TestRunNamesNoLine(t *testing.T) {
	t.Parallel()
	problem := jsonOf(400, `{"status":400,"code":"INVALID_REQUEST","detail":"line 1: priority: wrong","field":"priority","problems":[{"field":"priority","line":1,"problem":"wrong"}]}`)
	env := responses(t, map[string]func(http.ResponseWriter){"POST /v1/runs": problem, "POST /v1/runs:plan": problem})
	for _, more := range []string{"--detach", "--plan"} {
		if got := sortie(t, env, "", "run", "a", "--priority", "high", more); got.code != 2 || got.stderr != "sortie: --priority: wrong\n" {
			t.Errorf("%s: got %+v, want exit code 2 and the field without a line", more, got)
		}
	}
}

// TestSkippedRunHasItsOwnExitCode runs a program that a constraint skips, as text and as JSON.
func TestSkippedRunHasItsOwnExitCode(t *testing.T) {
	t.Parallel()
	env := responses(t, map[string]func(http.ResponseWriter){
		"POST /v1/runs":              jsonOf(202, `{"taskId":"job_1","runId":"job_1"}`),
		"GET /status/job_1":          jsonOf(200, `{"task_id":"job_1","status":"error","skipped":true,"error":"skipped: preRunHook: the hook refuses the run","error_code":"SKIPPED","state":"Completed"}`),
		"GET /v1/runs/job_1":         jsonOf(200, `{"taskId":"job_1","runId":"job_1","state":"Completed","skipped":true}`),
		"GET /v1/tasks/job_1/events": jsonOf(200, `{"events":[]}`),
	})
	for _, more := range [][]string{nil, {"--json"}} {
		got := sortie(t, env, "", append([]string{"run", "exec:/bin/true"}, more...)...)
		if got.code != 8 || !strings.Contains(got.stderr, "skipped: preRunHook: the hook refuses the run") {
			t.Errorf("%v: got %+v, want exit code 8 and the reason", more, got)
		}
	}
}

// compact returns the JSON with sorted members.
func compact(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(sorted)
}

// TestRunNamesTheFlagOfAProblem checks that problems of fields that flags set name the flags.
func TestRunNamesTheFlagOfAProblem(t *testing.T) {
	t.Parallel()
	refused := (&api{refuse: contract.Problem{Status: 422, Code: "INVALID_REQUEST", Detail: "two problems", Problems: []contract.FieldProblem{
		{Field: "constraints.maxAllowedRunTime", Problem: "1s is out of range"}, {Field: "priority", Problem: "unknown"},
	}}}).start(t)
	got := sortie(t, refused, "", "run", "a", "--timeout", "1s")
	if got.code != 2 || !strings.Contains(got.stderr, "  --timeout: 1s is out of range\n  priority: unknown\n") {
		t.Errorf("got %+v, want exit code 2, the flag and the field", got)
	}
}
