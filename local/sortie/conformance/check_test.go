//go:build unix

package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/sortie/conformance"
	"github.com/sortie-dev/sortie/local/twin/flymachines/environment"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// asWorker is the variable that makes the test binary an SDK worker.
const asWorker = "SORTIE_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		os.Exit(worker.Main(func(ctx context.Context, t *worker.Task) (worker.Result, error) {
			work, err := time.ParseDuration(strings.TrimPrefix(os.Args[1], "--seconds=") + "s")
			if err != nil {
				return worker.Result{}, err
			}
			t.Progress(50, "halfway")
			select {
			case <-time.After(work):
				return worker.Result{}, t.UploadOutput(ctx, strings.NewReader("done\n"), 5, "text/plain")
			case <-ctx.Done():
				return worker.Result{}, context.Cause(ctx)
			}
		}))
	}
	stacktest.AtOnce(6)
	goleak.VerifyTestMain(m)
}

// interval is the interval of heartbeats of the first try.
const interval = 200 * time.Millisecond

// seconds is the argument with the duration of the work. check replaces WORK by the seconds of
// 12 intervals.
const seconds = "--seconds=WORK"

// running limits the concurrent workers.
var running = make(chan struct{}, 8)

// check runs the kit on a command until the report is as expected, and returns the last report.
// The kit measures time, and a busy host delays its workers. So each further try has longer
// limits, and longer intervals if the command has the duration of its work as an argument.
func check(t *testing.T, env, only, command []string, expected func(conformance.Report) bool) (report conformance.Report) {
	t.Helper()
	running <- struct{}{}
	defer func() { <-running }()
	for _, slower := range []int{1, 5, 25} {
		longer := func(limit time.Duration) time.Duration { return time.Duration(slower) * limit }
		every := interval
		if slices.Contains(command, seconds) {
			every = longer(every)
		}
		filled := slices.Clone(command)
		for i, word := range filled {
			filled[i] = strings.ReplaceAll(word, "WORK", fmt.Sprintf("%.1f", 12*every.Seconds()))
		}
		var err error
		report, err = conformance.Check(t.Context(), conformance.Config{
			Command: filled, Environ: env, Clock: clock.System{}, Only: only,
			Interval: every, Timeout: longer(15 * interval), Grace: longer(5 * time.Second), Abort: longer(2 * time.Second), Limit: longer(time.Minute),
		})
		if err != nil {
			t.Error(err)
		}
		if err != nil || expected(report) {
			break
		}
		t.Logf("%v: got the failures %+v with limits multiplied by %d", filled, report.Failures(), slower)
	}
	return report
}

// conforms is the expectation of a worker without defects.
func conforms(r conformance.Report) bool { return len(r.Failures()) == 0 }

// fails returns the expectation of a worker with one failure.
func fails(requirement string) func(conformance.Report) bool {
	return func(r conformance.Report) bool {
		failures := r.Failures()
		return len(failures) == 1 && failures[0].Name == requirement
	}
}

// failed returns the names of the requirements that the worker failed.
func failed(r conformance.Report) (names []string) {
	for _, v := range r.Failures() {
		names = append(names, v.Name)
	}
	return names
}

// checkAll fails the test if the worker fails in any scenario, or if a requirement is not
// checked.
func checkAll(t *testing.T, env []string, command ...string) {
	t.Helper()
	var (
		mu     sync.Mutex
		checks sync.WaitGroup
		report conformance.Report
	)
	for _, name := range conformance.Scenarios() {
		checks.Go(func() {
			one := check(t, env, []string{name}, command, conforms)
			mu.Lock()
			defer mu.Unlock()
			report.Verdicts = append(report.Verdicts, one.Verdicts...)
			if !one.Conforms {
				t.Errorf("%s: got a worker that does not conform", name)
			}
		})
	}
	checks.Wait()
	for _, v := range report.Failures() {
		t.Errorf("%s: %s %s: %s", v.Scenario, v.Mark, v.Name, v.Detail)
	}
	checked := map[string]bool{}
	for _, v := range report.Verdicts {
		checked[v.Name] = true
	}
	for name := range strings.FieldsSeq("started started-409 bearer secret endpoint json attempt worker-id times progress interval alive " +
		"heartbeat-retry backoff heartbeat-410 cancel sigterm note-renewal completed completed-once completed-unchanged note-completed-retry completed-409 ends") {
		if !checked[name] {
			t.Errorf("got no check of requirement %q", name)
		}
	}
}

func TestSDKWorkerConforms(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	checkAll(t, []string{asWorker + "=1"}, self, seconds)
}

func TestPythonWorkerConforms(t *testing.T) {
	t.Parallel()
	checkAll(t, nil, stacktest.Python(t), "testdata/worker.py", seconds)
}

// A worker with one defect fails only the requirements of that defect.
func TestEachMistakeBreaksItsRequirement(t *testing.T) {
	t.Parallel()
	program := stacktest.Python(t)
	var checks sync.WaitGroup
	defer checks.Wait()
	for mistake, row := range map[string]struct{ scenario, requirements string }{
		"hard-coded-attempt":      {"work", "attempt"},
		"new-worker-id-each-time": {"work", "worker-id"},
		"no-started":              {"work", "started"},
		"ignores-409":             {"start-refused", "started-409"},
		"own-interval":            {"work", "interval alive"},
		"gives-up-heartbeats":     {"heartbeats-fail", "heartbeat-retry"},
		"hammers":                 {"heartbeats-fail", "backoff"},
		"ignores-410":             {"expired", "heartbeat-410"},
		"ignores-cancel":          {"cancel", "cancel"},
		"cancel-as-success":       {"cancel", "cancel"},
		"ignores-sigterm":         {"sigterm", "sigterm"},
		"token-in-address":        {"work", "bearer"},
		"prints-token":            {"work", "secret"},
		"token-to-bucket":         {"work", "bucket"},
		"no-content-type":         {"work", "json"},
		"local-time":              {"work", "times"},
		"two-outcomes":            {"result-unanswered", "completed-unchanged"},
		"completed-forever":       {"result-refused", "completed-409"},
		"no-completed":            {"work", "completed"},
		"text-progress":           {"work", "progress"},
		"unknown-category":        {"work", "error"},
		"heartbeats-after-end":    {"work", "completed-once"},
		"never-ends":              {"work", "ends"},
		"output-gap":              {"work", "output"},
		"output-not-base64":       {"work", "output"},
	} {
		checks.Go(func() {
			want := strings.Fields(row.requirements)
			expected := func(r conformance.Report) bool {
				got := failed(r)
				return slices.Contains(got, want[0]) && !slices.ContainsFunc(got, func(name string) bool { return !slices.Contains(want, name) })
			}
			report := check(t, nil, []string{row.scenario}, []string{program, "testdata/worker.py", seconds, "--broken", mistake}, expected)
			if !expected(report) {
				t.Errorf("%s: got failures of %v, want %v", mistake, failed(report), want)
				for _, v := range report.Failures() {
					t.Log(mistake, v.Name, v.Detail)
				}
			}
			text, err := json.Marshal(report)
			if err != nil || strings.Contains(string(text), "token.") || strings.Contains(string(text), "signature-") {
				t.Errorf("%s: got a secret in the report: %s", mistake, text)
			}
		})
	}
}

// A worker that obeys the contract but uses no extension of Sortie conforms. The missing
// extensions are notes.
func TestWorkerWithoutExtensionsConforms(t *testing.T) {
	t.Parallel()
	report := check(t, nil, []string{"work", "sigterm", "renewal", "start-unanswered", "result-unanswered"},
		[]string{stacktest.Python(t), "testdata/worker.py", seconds, "--plain"}, conforms)
	if !report.Conforms || len(report.Failures()) > 0 {
		t.Errorf("got failures %+v, want none", report.Failures())
	}
	notes := map[string]string{}
	for _, v := range report.Verdicts {
		if v.Mark == conformance.Note {
			notes[v.Name], _, _ = strings.Cut(v.Detail, ":")
		}
	}
	for _, name := range []string{"note-renewal", "note-completed-retry", "note-whole-progress", "note-sigterm", "note-started-retry"} {
		if notes[name] != "no" {
			t.Errorf("got %q for %s, want no", notes[name], name)
		}
	}
}

// A worker that makes no call fails once, and the other scenarios do not run.
func TestSilentWorkerIsReportedOnce(t *testing.T) {
	t.Parallel()
	report := check(t, nil, nil, []string{"/bin/sh", "-c", "echo nothing to do; exit 3"}, fails("started"))
	failures := report.Failures()
	if len(failures) != 1 || failures[0].Name != "started" || !strings.Contains(failures[0].Detail, "nothing to do") || len(report.Skipped) != len(conformance.Scenarios())-1 {
		t.Errorf("got failures %+v, skipped %v, want started with the output, and the other scenarios", failures, report.Skipped)
	}
}

// The defect appears in every scenario.
func TestOneMistakeIsReportedOnce(t *testing.T) {
	t.Parallel()
	python := stacktest.Python(t)
	for name, row := range map[string]struct {
		command     []string
		requirement string
		also        int
	}{
		"wrong attempt":  {[]string{python, "testdata/worker.py", seconds, "--broken", "hard-coded-attempt"}, "attempt", 2},
		"ends too early": {[]string{python, "testdata/worker.py", "--seconds=0.01"}, "interval", 2},
		"crashes":        {[]string{python, "testdata/worker.py", seconds, "--broken", "crashes"}, "completed", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := check(t, nil, []string{"work", "cancel", "expired"}, row.command, fails(row.requirement))
			failures := report.Failures()
			if len(failures) != 1 || failures[0].Name != row.requirement || len(failures[0].Also) != row.also || failures[0].Scenario != "work" {
				t.Errorf("got failures %+v, want one of %s in work and %d more scenarios", failures, row.requirement, row.also)
			}
		})
	}
}

// The worker is a shell script without TASK_ENVELOPE (EC-9.3).
func TestWorkerThatOnlyCallsBackIsChecked(t *testing.T) {
	t.Parallel()
	const call = `curl -sS -o /dev/null -H 'Content-Type: application/json' -d "$body" "$CALLBACK_URL"; `
	const put = `printf '<mods/>' | curl -sS -o /dev/null -T - "$R2_ENDPOINT/$R2_BUCKET/exports/$TASK_ID/a.xml"; `
	success := `body='{"task_id":"'$TASK_ID'","batch_id":"'$BATCH_ID'","status":"success","output_r2_key":"exports/'$TASK_ID'/a.xml","output_file_name":"a.xml","output_file_size":7}'; `
	for name, row := range map[string]struct{ script, want string }{
		"success":        {put + success + call, ""},
		"error":          {`body='{"task_id":"'$TASK_ID'","batch_id":"'$BATCH_ID'","status":"error","error":"no manifest"}'; ` + call, ""},
		"no error text":  {`body='{"task_id":"'$TASK_ID'","batch_id":"'$BATCH_ID'","status":"error"}'; ` + call, "callback-error"},
		"other task":     {`body='{"task_id":"other","batch_id":"single","status":"error","error":"x"}'; ` + call, "callback"},
		"twice":          {put + success + call + call, "callback"},
		"no object":      {success + call, "callback-output"},
		"prints the URL": {put + success + call + `echo "$CALLBACK_URL"`, "callback-secret"},
		"never ends":     {put + success + call + `sleep 100`, "callback-ends"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := check(t, nil, nil, []string{"sh", "-c", row.script}, func(r conformance.Report) bool { return strings.Join(failed(r), " ") == row.want })
			if report.Contract != "export" || strings.Join(failed(report), " ") != row.want || len(report.Skipped) == 0 {
				t.Errorf("got contract %s, failures %+v, skipped %v, want export, [%s]", report.Contract, report.Failures(), report.Skipped, row.want)
			}
		})
	}
}

// The environment is that of a local machine and has no variables of the caller.
func TestWorkerGetsTheEnvironmentOfAMachine(t *testing.T) {
	t.Parallel()
	report := check(t, []string{"EXTRA=yes"}, nil, []string{"sh", "-c", `env | cut -d= -f1 | sort | tr '\n' ' '; echo; [ "$PWD" = "$HOME" ] && [ -d "$TMPDIR" ] && echo "in $PATH"`}, fails("started"))
	got := report.Failures()[0].Detail
	want := "BATCH_ID CALLBACK_URL EXPORT_FORMAT EXPORT_OPTIONS EXTRA FLY_ALLOC_ID FLY_APP_NAME FLY_IMAGE_REF FLY_MACHINE_ID FLY_MACHINE_VERSION " +
		"FLY_PRIVATE_IP FLY_PROCESS_GROUP FLY_REGION FLY_VM_MEMORY_MB HOME PATH PI PRIMARY_REGION PWD R2_ACCESS_KEY_ID R2_ACCOUNT_ID R2_BUCKET " +
		"R2_ENDPOINT R2_REGION R2_SECRET_ACCESS_KEY SORTIE_CHECK SOURCE_API_URL TASK_ENVELOPE TASK_ID TMPDIR TRACEPARENT"
	if got = strings.ReplaceAll(strings.ReplaceAll(got, "OLDPWD ", ""), "SHLVL ", ""); !strings.Contains(got, want) || !strings.Contains(got, "in "+environment.DefaultPath) {
		t.Errorf("got %q, want %s and PATH %s", got, want, environment.DefaultPath)
	}
}

func TestUnknownScenarioIsAnError(t *testing.T) {
	t.Parallel()
	_, err := conformance.Check(t.Context(), conformance.Config{Command: []string{"true"}, Clock: clock.System{}, Only: []string{"other"}})
	if err == nil || !strings.Contains(err.Error(), `"other"`) || !strings.Contains(err.Error(), "renewal") {
		t.Errorf("got error %v", err)
	}
	_, err = conformance.Check(t.Context(), conformance.Config{Command: []string{filepath.Join(t.TempDir(), "none")}, Clock: clock.System{}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v", err)
	}
}

func TestPlaneRefusesWrongToken(t *testing.T) {
	t.Parallel()
	p, err := conformance.NewPlane(clock.System{}, contract.TaskEnvelope{TaskID: "t", Attempt: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.Envelope().CallbackBaseURL+"/v1/tasks/t/started", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer other")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusUnauthorized || len(p.Calls()) != 1 {
		t.Errorf("got %s and %d calls, want 401 and 1", resp.Status, len(p.Calls()))
	}
}
