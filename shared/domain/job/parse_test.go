package job_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

func deployment() *job.Deployment {
	return &job.Deployment{
		Policy: spec.Policy{
			StartTimeout: 10 * time.Minute, TimeLimit: time.Hour, HeartbeatInterval: 30 * time.Second, HeartbeatTimeout: 90 * time.Second,
			CancelGrace: 30 * time.Second, QueueTimeout: 24 * time.Hour, OutputRetention: 24 * time.Hour, RecordRetention: 168 * time.Hour,
			Retry: spec.Retry{MaxAttempts: 3, MaxFurtherStarts: 3, InitialDelay: 2 * time.Second, Multiplier: 2, MaxDelay: time.Minute, Jitter: 0.5},
		},
		HasPool: func(name string) bool { return name == "default" || name == "large" }, NoBucketKeys: true,
		OnKubernetes: func(name string) bool { return name == "large" },
		CheckPodSpec: func(document json.RawMessage) (found []*fault.Fault) {
			for field, words := range map[string]string{"podSpec.hostNetwork": "hostNetwork", "podSpec.volumes.0.nfs": "nfs"} {
				if strings.Contains(string(document), words) {
					found = append(found, fault.Invalid(field, "%s: not allowed", field))
				}
			}
			return found
		},
		CheckURL: func(url string) error {
			if strings.Contains(url, "127.0.0.1") {
				return errors.New("loopback address")
			}
			return nil
		},
	}
}

func parseJob(t *testing.T, document string) job.Definition {
	t.Helper()
	d, problems := job.Parse([]byte(document), deployment())
	if len(problems) > 0 {
		t.Fatalf("got problems %v, want none", problems)
	}
	return d
}

func sample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDefinitionIsKeptAsWritten compares the canonical form with the document as read by
// another YAML parser.
func TestDefinitionIsKeptAsWritten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nightly-report.yaml", "nightly-export.yaml", "every-field.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := sample(t, name)
			want, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			fromYAML := parseJob(t, document)
			fromJSON := parseJob(t, string(want))
			var stored job.Definition
			got := canonical(t, fromYAML)
			if err := json.Unmarshal([]byte(got), &stored); err != nil {
				t.Fatal(err)
			}
			for how, other := range map[string]job.Definition{"JSON": fromJSON, "the store": stored} {
				if text := canonical(t, other); text != got {
					t.Errorf("got %s from %s, want %s", text, how, got)
				}
			}
			if !sameJSON(t, got, string(want)) {
				t.Errorf("got %s, want the members of %s", got, want)
			}
		})
	}
}

func canonical(t *testing.T, d job.Definition) string {
	t.Helper()
	text, err := d.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var texts [2]string
	for i, text := range []string{a, b} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(plain)
	}
	return texts[0] == texts[1]
}

func TestProblemsNameFieldAndLine(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		document string
		want     []string
	}{
		"empty":          {"", []string{"line 1: empty document"}},
		"comment":        {"# none\n", []string{"line 1: empty document"}},
		"list":           {"- a\n", []string{"line 1: document is a list"}},
		"two documents":  {"id: a\n---\nid: b\n", []string{"line 3: second document"}},
		"missing fields": {"\nname: x\n", []string{"line 2: id: missing", "line 2: image: missing"}},
		"unquoted cron":  {"id: a\nschedule: */5 * * * *\n", []string{"line 2: schedule: malformed YAML"}},
		"unquoted macro": {"id: a\nschedule: @daily\n", []string{"line 2: schedule: malformed YAML: '@' is a reserved character; quote"}},
		"broken JSON":    {"{\n\"id\": \"a\",\n\"image\" \"x\"}", []string{"line 3: malformed JSON or YAML"}},
		"tab":            {"id: a\nenv:\n\tA: b\n", []string{"line 3: env: tab in the indentation, want spaces"}},
		"tab in a list":  {"id: a\ncommand:\n\t- c\n", []string{"line 3: command: tab in the indentation, want spaces"}},
		"open quote":     {"id: a\nactions:\n  onFailure:\n    type: skip\n  onSuccess:\n    type: \"skip\n", []string{"line 6: actions.onSuccess.type: malformed YAML"}},
		"alias":          {"id: &a x\nimage: b\n", []string{"line 1: id: anchor is not supported"}},
		"infinite":       {"id: a\nimage: b\nretryConfig: {backoffMultiplier: .inf}\n", []string{"line 3: retryConfig.backoffMultiplier: infinity is not supported"}},
		"huge":           {"id: a\nimage: b\nretryConfig:\n  backoffMultiplier: 1e400\n", []string{"line 4: retryConfig.backoffMultiplier: "}},
		"huge integers": {"id: a\nimage: b\nconstraints: {maxConcurrentRuns: 99999999999999999999}\nresources: {cpus: -1e400}\nexitCodes: {retry: [9007199254740993]}\n", []string{
			"line 3: constraints.maxConcurrentRuns: 99999999999999999999 is out of range, want 1 to 10000", "line 4: resources.cpus: -1e400 is out of range, want 1 to 16", "line 5: exitCodes.retry.0: 9007199254740993 is out of range, want 0 to 255",
		}},
		"number of YAML 1.1": {"id: a\nimage: b\nconcurrencyKey: 010\nconstraints: {maxConcurrentRuns: 010}\nresources: {cpus: 1_0}\n", []string{`line 4: constraints.maxConcurrentRuns: "010", want an integer`, `line 5: resources.cpus: "1_0", want an integer`}},
		"unknown field":      {"id: a\nimage: b\nconstraints:\n  max_concurrent_runs: 1\n", []string{"line 4: constraints.max_concurrent_runs: unknown field, did you mean maxConcurrentRuns?"}},
		"duplicate":          {"id: a\nimage: b\nid: c\n", []string{"line 3: id: duplicate field, want one; the first is on line 1"}},
		"no export": {"id: a\nexport: {format: pdf, options: {maxDepth: 101, depth: 1}}\n", []string{
			"line 2: export.format: unknown export format", "line 2: export.options.depth: unknown field", "line 2: export.options.maxDepth: 101 is out of range", "line 2: export.pi: malformed PI",
		}},
		"null":             {"id: a\nimage: b\nname:\n", []string{"line 3: name: null, want a string or no field"}},
		"number as text":   {"id: a\nimage: b\nenv:\n  PORT: 8080\n", []string{`line 4: env.PORT: 8080, want a string, such as "8080"`}},
		"bool as text":     {"id: a\nimage: b\ncommand:\n- x\n- true\n", []string{`line 5: command.1: true, want a string, such as "true"`}},
		"text as object":   {"id: a\nimage: b\nretention: 30d\n", []string{`line 3: retention: "30d", want an object of outputs, logs, records, newest`}},
		"text as number":   {"id: a\nimage: b\nconstraints: {maxConcurrentRuns: one}\n", []string{`line 3: constraints.maxConcurrentRuns: "one", want an integer`}},
		"fraction":         {"id: a\nimage: b\nresources: {cpus: 1.5}\n", []string{"line 3: resources.cpus: 1.5, want an integer"}},
		"secret form":      {"id: a\nimage: b\nenv: {K: {secret: x}}\n", []string{"line 3: env.K: object without secretRef", "line 3: env.K.secret: unknown field, want one of secretRef"}},
		"JSON lines":       {"{\n \"id\": \"a\",\n \"image\": 1,\n \"x\": 2\n}", []string{"line 3: image: 1, want a string", "line 4: x: unknown field"}},
		"all at once":      {"id: A\nimage: b\nlogs: all\npriority: high\n", []string{"line 1: id: malformed id", "line 3: logs: unknown value", "line 4: priority: unknown value"}},
		"one per field":    {"id: 5\nimage: b\n", []string{"line 1: id: 5, want a string"}},
		"too long":         {"id: a\nimage: b\nname: \"" + strings.Repeat("x", limit.JobDocument) + "\"\n", []string{"line 1: document of"}},
		"too deep":         {"id: a\nimage: b\npodSpec: " + strings.Repeat("{a: ", 40) + "1" + strings.Repeat("}", 40) + "\n", []string{"line 3: podSpec.a.a."}},
		"open brackets":    {"id: a\ncommand: " + strings.Repeat("[", 1000), []string{"line 2: nested too deeply"}},
		"lists in lists":   {"id: a\ncommand:\n " + strings.Repeat("- ", 1000), []string{"line 3: nested too deeply"}},
		"invalid UTF-8":    {"id: \xff\n", []string{"line 1: invalid UTF-8"}},
		"cron":             {"id: a\nimage: b\nschedule: \"61 * * * *\"\n", []string{"line 3: schedule: position 1: "}},
		"zone in small":    {"id: a\nimage: b\nschedule: \"@daily\"\ntimeZone: america/new_york\n", []string{"did you mean America/New_York?"}},
		"zone of the host": {"id: a\nimage: b\nschedule: \"@daily\"\ntimeZone: local\n", []string{"want a name of the IANA database"}},
		"zone":             {"id: a\nimage: b\nschedule: \"@daily\"\ntimeZone: Mars/Olympus\n", []string{"line 4: timeZone: unknown time zone"}},
		"duration":         {"id: a\nimage: b\nschedule: \"@daily\"\njitter: 5\n", []string{"line 4: jitter: 5, want a string"}},
		"missed rule":      {"id: a\nimage: b\nschedule: \"@daily\"\nmissed: newest\n", []string{`line 4: missed: unknown value "newest", want latest or all or none`}},
		"short deadline":   {"id: a\nimage: b\nschedule: \"@daily\"\nstartingDeadline: 9s\n", []string{"line 4: startingDeadline: 9s is out of range, want 10s to 720h"}},
		"long deadline":    {"id: a\nimage: b\nschedule: \"@daily\"\nstartingDeadline: 721h\n", []string{"line 4: startingDeadline: 721h is out of range, want 10s to 720h"}},
		"duration unit":    {"id: a\nimage: b\nconstraints: {catchUpWindow: 6 hours}\n", []string{`line 3: constraints.catchUpWindow: malformed duration "6 hours", want one such as 90s`}},
		"no duration":      {"id: a\nimage: b\nconstraints: {maxAllowedRunTime: 1 day}\n", []string{`line 3: constraints.maxAllowedRunTime: malformed duration "1 day"`}},
		"time limit":       {"id: a\nimage: b\nconstraints:\n  maxAllowedRunTime: 1s\n", []string{"line 4: constraints.maxAllowedRunTime: 1s is out of range"}},
		"seconds":          {"id: a\nimage: b\npolicy:\n  timeLimitSeconds: 99999999999\n", []string{"line 4: policy.timeLimitSeconds: "}},
		"heartbeats":       {"id: a\nimage: b\npolicy:\n  heartbeatIntervalSeconds: 2000\n", []string{"line 4: policy.heartbeatIntervalSeconds: "}},
		"retries":          {"id: a\nimage: b\nretryConfig: {maxRetries: 100}\n", []string{"line 3: retryConfig.maxRetries: 100 is out of range, want 0 to 99"}},
		"retry delays":     {"id: a\nimage: b\nretryConfig:\n  initialDelay: 1500ms\n  maxDelay: 0s\n", []string{"line 4: retryConfig.initialDelay: 1.5s is out of range", "line 5: retryConfig.maxDelay: 0s is out of range"}},
		"multiplier":       {"id: a\nimage: b\nretryConfig: {backoffMultiplier: 0.5}\n", []string{"line 3: retryConfig.backoffMultiplier: 0.5 is out of range"}},
		"exec path":        {"id: a\nimage: exec:echo\n", []string{"line 2: image: "}},
		"env name":         {"id: a\nimage: b\nenv: {A-B: x}\n", []string{"line 3: env.A-B: malformed name"}},
		"labels":           {"id: a\nimage: b\nlabels:\n  a b: x\n  team: b c\n  n: 1\n", []string{"line 4: labels.a b: malformed key", `line 5: labels.team: malformed value "b c"`, `line 6: labels.n: 1, want a string, such as "1"`}},
		"output folder":    {"id: a\nimage: b\noutput: {path: a/..}\n", []string{"line 3: output.path: malformed path"}},
		"memory":           {"id: a\nimage: b\nresources: {memoryMB: 300}\n", []string{"line 3: resources.memoryMB: 300 is no multiple of 256"}},
		"action type":      {"id: a\nimage: b\nactions: {onFailure: {type: mail}}\n", []string{"line 3: actions.onFailure.type: unknown type"}},
		"action parameter": {"id: a\nimage: b\nactions: {onFailure: {type: webhook, parameters: {uri: x}}}\n", []string{"line 3: actions.onFailure.parameters.uri: unknown parameter", "line 3: actions.onFailure.parameters.url: missing"}},
		"parameter type":   {"id: a\nimage: b\nactions: {onFailure: {type: trigger_job, parameters: {jobId: [x]}}}\n", []string{"line 3: actions.onFailure.parameters.jobId: a list, want a string or a number"}},
		"constraint name":  {"id: a\nimage: b\nactions: {onViolationOf: {maxRuns: {type: skip}}}\n", []string{"line 3: actions.onViolationOf.maxRuns: unknown constraint"}},
		"hook's headers":   {"id: a\nimage: b\nconstraints:\n  preRunHook:\n    url: https://example.org\n    headers:\n      Host: internal\n      X-Team: \"a\\nb\"\n", []string{"line 7: constraints.preRunHook.headers.Host: reserved header", "line 8: constraints.preRunHook.headers.X-Team: malformed value"}},
		"hook":             {"id: a\nimage: b\nconstraints: {preRunHook: {url: \"ftp://x\", timeout: 1h}}\n", []string{"line 3: constraints.preRunHook.timeout: 1h is out of range, want 1s to 30s", "line 3: constraints.preRunHook.url: malformed url"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := job.Parse([]byte(row.document), deployment())
			if !matches(problems, row.want) {
				t.Errorf("got %v, want %v", problems, row.want)
			}
			for _, p := range problems {
				if p.Unprocessable {
					t.Errorf("got unprocessable problem %v, want a malformed field", p)
				}
			}
		})
	}
}

// matches reports whether each problem starts with the wanted text.
func matches(problems []job.Problem, want []string) bool {
	if len(problems) != len(want) {
		return false
	}
	for i, p := range problems {
		if !strings.Contains(p.String(), want[i]) {
			return false
		}
	}
	return true
}

func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	_, problems := job.Parse([]byte(strings.Repeat("x: 1\n", 5000)), deployment())
	if len(problems) != 100 {
		t.Errorf("got %d problems, want 100", len(problems))
	}
}

func TestMeaninglessCombinations(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ document, field string }{
		"wait without a limit":         {"actions: {onConstraintViolation: {type: wait}}", "actions.onConstraintViolation.type"},
		"kill_old without a limit":     {"constraints: {requirePreviousSuccess: true}\nactions: {onViolationOf: {requirePreviousSuccess: {type: kill_old}}}", "actions.onViolationOf.requirePreviousSuccess.type"},
		"wait for a hook alone":        {"constraints: {preRunHook: {url: \"https://example.org\"}}\nactions: {onConstraintViolation: {type: wait}}", "actions.onConstraintViolation.type"},
		"wait for a window alone":      {"constraints: {catchUpWindow: 1h}\nactions: {onViolationOf: {catchUpWindow: {type: wait}}}", "actions.onViolationOf.catchUpWindow.type"},
		"kill_old for a hook alone":    {"constraints: {preRunHook: {url: \"https://example.org\"}}\nactions: {onConstraintViolation: {type: kill_old}}", "actions.onConstraintViolation.type"},
		"kill_old for a window alone":  {"constraints: {catchUpWindow: 1h}\nactions: {onConstraintViolation: {type: kill_old}}", "actions.onConstraintViolation.type"},
		"skip after a failure":         {"actions: {onFailure: {type: skip}}", "actions.onFailure.type"},
		"wait after a skip":            {"constraints: {maxConcurrentRuns: 1}\nactions: {onSkip: {type: wait}}", "actions.onSkip.type"},
		"critical onSkip":              {"actions: {onSkip: {type: trigger_job, critical: true, parameters: {jobId: other}}}", "actions.onSkip.critical"},
		"onSkip triggers its own job":  {"actions: {onSkip: {type: trigger_job, parameters: {jobId: a}}}", "actions.onSkip.parameters.jobId"},
		"retry_later after a success":  {"actions: {onSuccess: {type: retry_later}}", "actions.onSuccess.type"},
		"skip after the expected time": {"constraints: {maxExpectedRunTime: 1m}\nactions: {onViolationOf: {maxExpectedRunTime: {type: skip}}}", "actions.onViolationOf.maxExpectedRunTime.type"},
		"action without constraint":    {"actions: {onViolationOf: {catchUpWindow: {type: skip}}}", "actions.onViolationOf.catchUpWindow"},
		"constraint that is off":       {"constraints: {requirePreviousSuccess: false}\nactions: {onViolationOf: {requirePreviousSuccess: {type: skip}}}", "actions.onViolationOf.requirePreviousSuccess"},
		"trigger of itself":            {"actions: {onSuccess: {type: trigger_job, parameters: {jobId: a}}}", "actions.onSuccess.parameters.jobId"},
		"short kill_old":               {"constraints: {maxConcurrentRuns: 1}\nactions: {onConstraintViolation: {type: kill_old, parameters: {limit: 80s}}}", "actions.onConstraintViolation.parameters.limit"},
		"critical skip":                {"actions: {onConstraintViolation: {type: skip, critical: true}}", "actions.onConstraintViolation.critical"},
		"critical retry_later":         {"actions: {onConstraintViolation: {type: retry_later, critical: true}}", "actions.onConstraintViolation.critical"},
		"critical wait":                {"constraints: {maxConcurrentRuns: 1}\nactions: {onConstraintViolation: {type: wait, critical: true}}", "actions.onConstraintViolation.critical"},
		"critical kill_old":            {"constraints: {maxConcurrentRuns: 1}\nactions: {onViolationOf: {maxConcurrentRuns: {type: kill_old, critical: true}}}", "actions.onViolationOf.maxConcurrentRuns.critical"},
		"critical onFailure":           {"actions: {onFailure: {type: webhook, critical: true, parameters: {url: \"https://example.org\"}}}", "actions.onFailure.critical"},
		"critical onSuccess":           {"actions: {onSuccess: {type: trigger_job, critical: true, parameters: {jobId: b}}}", "actions.onSuccess.critical"},
		"critical after a slow run":    {"constraints: {maxExpectedRunTime: 1m}\nactions: {onViolationOf: {maxExpectedRunTime: {type: webhook, critical: true, parameters: {url: \"https://example.org\"}}}}", "actions.onViolationOf.maxExpectedRunTime.critical"},
		"delay over limit":             {"actions: {onConstraintViolation: {type: retry_later, parameters: {delay: 2m, limit: 1m}}}", "actions.onConstraintViolation.parameters.delay"},
		"two time limits":              {"constraints: {maxAllowedRunTime: 1h}\npolicy: {timeLimitSeconds: 3601}", "constraints.maxAllowedRunTime"},
		"expected over allowed":        {"constraints: {maxExpectedRunTime: 2h, maxAllowedRunTime: 1h}", "constraints.maxExpectedRunTime"},
		"expected over default":        {"constraints: {maxExpectedRunTime: 1h}", "constraints.maxExpectedRunTime"},
		"zone without schedule":        {"timeZone: Europe/Berlin", "timeZone"},
		"zone of an interval":          {"schedule: \"@every 1h\"\ntimeZone: Europe/Berlin", "timeZone"},
		"jitter without schedule":      {"jitter: 1m", "jitter"},
		"jitter over interval":         {"schedule: \"@every 1m\"\njitter: 60s", "jitter"},
		"missed without schedule":      {"missed: all", "missed"},
		"deadline without schedule":    {"startingDeadline: 1m", "startingDeadline"},
		"latest with catchUp":          {"schedule: \"@daily\"\nmissed: latest\nconstraints: {catchUp: true}", "missed"},
		"none with catchUp":            {"schedule: \"@daily\"\nmissed: none\nconstraints: {catchUp: true}", "missed"},
		"deadline with catchUp":        {"schedule: \"@daily\"\nstartingDeadline: 1h\nconstraints: {catchUp: true}", "startingDeadline"},
		"catch-up without schedule":    {"constraints: {catchUp: true}", "constraints.catchUp"},
		"export of a command":          {"export: {format: dc, pi: 01K9XVBAQZF9EHDRXGBEADTZYY}\ncommand: [a]", "command"},
		"export with a log rule":       {"export: {format: dc, pi: 01K9XVBAQZF9EHDRXGBEADTZYY}\nlogs: keep", "logs"},
		"exit code twice":              {"exitCodes: {success: [3], fail: [3]}", "exitCodes.fail.0"},
		"exit codes of a callback":     {"completion: callback\nexitCodes: {retry: [1]}", "exitCodes"},
		"pod in another pool":          {"pool: default\npodSpec: {containers: []}", "podSpec"},
		"pod without Kubernetes":       {"podSpec: {containers: []}", "podSpec"},
		"pod that the cluster refuses": {"pool: large\npodSpec: {hostNetwork: true}", "podSpec.hostNetwork"},
		"volume of a pod":              {"pool: large\npodSpec:\n  volumes:\n    - {name: a, nfs: {server: b}}", "podSpec.volumes.0.nfs"},
		"keys of no worker":            {"bucketCredentials: variables", "bucketCredentials"},
		"unknown pool":                 {"pool: tiny", "pool"},
		"variable of the loader":       {"env: {LDFLAGS: x, LD_PRELOAD: /tmp/x.so}", "env.LD_PRELOAD"},
		"secret for the loader":        {"env: {LD_AUDIT: {secretRef: x}}", "env.LD_AUDIT"},
		"loader of macOS":              {"env: {DYLD_INSERT_LIBRARIES: x}", "env.DYLD_INSERT_LIBRARIES"},
		"variable of Go's runtime":     {"env: {GODEBUG: x, GOFLAGS: x}", "env.GODEBUG"},
		"traces of Go's runtime":       {"env: {GOTRACEBACK: crash}", "env.GOTRACEBACK"},
		"output above the folder":      {"output: {path: ../../token}", "output.path"},
		"output that climbs later":     {"output: {path: a/../../token}", "output.path"},
		"private address":              {"constraints: {postRunHook: {url: \"https://127.0.0.1/\"}}", "constraints.postRunHook.url"},
		"private address of an action": {"actions: {onFailure: {type: webhook, parameters: {url: \"https://127.0.0.1/\"}}}", "actions.onFailure.parameters.url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := job.Parse([]byte("id: a\nimage: b\n"+row.document+"\n"), deployment())
			if len(problems) != 1 || problems[0].Field != row.field || !problems[0].Unprocessable || problems[0].Line < 3 {
				t.Errorf("got %v, want one unprocessable problem of %s", problems, row.field)
			}
		})
	}
}

func TestSameTimeLimitTwiceIsAccepted(t *testing.T) {
	t.Parallel()
	d := parseJob(t, "id: a\nimage: b\nconstraints: {maxAllowedRunTime: 90m}\npolicy: {timeLimitSeconds: 5400}\n")
	if got := d.Run(deployment().Policy).Policy.TimeLimit; got != 90*time.Minute {
		t.Errorf("got time limit %s, want 1h30m", got)
	}
}

func TestAdHocDefinition(t *testing.T) {
	t.Parallel()
	adHoc := deployment()
	adHoc.AdHoc = true
	if _, problems := job.Parse([]byte(`{"image": "b"}`), adHoc); len(problems) > 0 {
		t.Errorf("got %v, want no problems without an id", problems)
	}
	_, problems := job.Parse([]byte(`{"id": "a", "image": "b", "schedule": "@daily"}`), adHoc)
	if !matches(problems, []string{"id: ", "schedule: "}) {
		t.Errorf("got %v, want problems of id and schedule", problems)
	}
}

// TestLimitsAreNoShorterThanWakeUpsAreLate parses lateness limits for deployments whose
// wake-ups are precise, and up to 90 s late.
func TestLimitsAreNoShorterThanWakeUpsAreLate(t *testing.T) {
	t.Parallel()
	for field, write := range map[string]string{"startingDeadline": "startingDeadline: %s\n", "constraints.catchUpWindow": "constraints: {catchUpWindow: %s}\n"} {
		for value, want := range map[string]int{"10s": 1, "89s": 1, "90s": 0, "720h": 0} {
			text := []byte("id: a\nimage: b\nschedule: \"@daily\"\n" + fmt.Sprintf(write, value))
			at := deployment()
			if _, problems := job.Parse(text, at); len(problems) > 0 {
				t.Errorf("%s %s: got %v, want none", field, value, problems)
			}
			at.WakePrecision = 90 * time.Second
			_, problems := job.Parse(text, at)
			if len(problems) != want || want > 0 && (problems[0].Field != field || !problems[0].Unprocessable) {
				t.Errorf("%s %s: got %v with wake-ups that are late, want %d", field, value, problems, want)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"nightly-report.yaml", "nightly-export.yaml", "every-field.yaml"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"id": "a", "image": "b", "env": {"A": {"secretRef": "x"}}}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		d, problems := job.Parse(document, deployment())
		if len(problems) > 0 {
			return
		}
		again, problems := job.Parse([]byte(canonical(t, d)), deployment())
		if len(problems) > 0 || canonical(t, again) != canonical(t, d) {
			t.Errorf("got %v and %s, want %s without problems", problems, canonical(t, again), canonical(t, d))
		}
		d.Run(deployment().Policy)
	})
}
