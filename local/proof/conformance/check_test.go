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

	"github.com/sortie-dev/sortie/local/proof/conformance"
	"github.com/sortie-dev/sortie/local/twin/stacktest"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/worker"
)

// asWorker makes this test program a worker that uses the SDK.
const asWorker = "SORTIE_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		os.Exit(worker.Main(func(ctx context.Context, t *worker.Task) (worker.Result, error) {
			t.Progress(50, "halfway")
			select {
			case <-time.After(work):
				return worker.Result{}, t.UploadOutput(ctx, strings.NewReader("done\n"), 5, "text/plain")
			case <-ctx.Done():
				return worker.Result{}, context.Cause(ctx)
			}
		}))
	}
	goleak.VerifyTestMain(m)
}

// How fast it goes here: work is 12 intervals, and a worker is given 15 without
// a call, because the host may be busy.
const (
	interval = 200 * time.Millisecond
	timeout  = 15 * interval
	work     = 12 * interval
)

// seconds tells the Python worker the same.
var seconds = fmt.Sprintf("--seconds=%.1f", work.Seconds())

// busy bounds how many workers run at once: they mostly wait.
var busy = make(chan struct{}, 8)

// check runs the kit on a command and gives its verdicts.
func check(t *testing.T, env []string, only []string, command ...string) conformance.Report {
	t.Helper()
	busy <- struct{}{}
	defer func() { <-busy }()
	report, err := conformance.Check(t.Context(), conformance.Config{
		Command: command, Environ: append(os.Environ(), env...), Clock: clock.System{}, Only: only,
		Interval: interval, Timeout: timeout,
	})
	if err != nil {
		t.Error(err)
	}
	return report
}

// all wants that nothing is wrong in any scenario and every sentence is judged.
func all(t *testing.T, env []string, command ...string) {
	t.Helper()
	var (
		mu      sync.Mutex
		playing sync.WaitGroup
		report  conformance.Report
	)
	for _, name := range conformance.Scenarios() {
		playing.Go(func() {
			one := check(t, env, []string{name}, command...)
			mu.Lock()
			defer mu.Unlock()
			report.Verdicts = append(report.Verdicts, one.Verdicts...)
			if !one.Conforms {
				t.Errorf("the worker does not conform in %s", name)
			}
		})
	}
	playing.Wait()
	for _, v := range report.Failures() {
		t.Errorf("%s: %s %s: %s", v.Scenario, v.Mark, v.Name, v.Detail)
	}
	judged := map[string]bool{}
	for _, v := range report.Verdicts {
		judged[v.Name] = true
	}
	for name := range strings.FieldsSeq("started started-409 bearer secret address json attempt worker-id times progress interval alive " +
		"heartbeat-retry backoff heartbeat-410 cancel sigterm renewal completed completed-once completed-retry completed-409 ends") {
		if !judged[name] {
			t.Errorf("the sentence %q was not judged", name)
		}
	}
}

func TestSDKWorkerConforms(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all(t, []string{asWorker + "=1"}, self)
}

func TestPythonWorkerConforms(t *testing.T) {
	t.Parallel()
	all(t, nil, stacktest.Python(t), "testdata/worker.py", seconds)
}

// TestEachMistakeBreaksItsRequirement: a worker that conforms but for one
// thing is told that one thing.
func TestEachMistakeBreaksItsRequirement(t *testing.T) {
	t.Parallel()
	program := stacktest.Python(t)
	var playing sync.WaitGroup
	defer playing.Wait()
	for mistake, row := range map[string]struct{ scenario, sentence string }{
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
		"keeps-old-token":         {"renewal", "renewal"},
		"token-in-address":        {"work", "bearer"},
		"prints-token":            {"work", "secret"},
		"token-to-bucket":         {"work", "bucket"},
		"no-content-type":         {"work", "json"},
		"local-time":              {"work", "times"},
		"float-progress":          {"work", "progress"},
		"completed-once-only":     {"result-unheard", "completed-retry"},
		"two-outcomes":            {"result-unheard", "completed-retry"},
		"completed-forever":       {"result-refused", "completed-409"},
		"no-completed":            {"work", "completed"},
		"unknown-category":        {"work", "error"},
		"heartbeats-after-end":    {"work", "completed-once"},
		"never-ends":              {"work", "ends"},
	} {
		playing.Go(func() {
			report := check(t, nil, []string{row.scenario}, program, "testdata/worker.py", seconds, "--broken", mistake)
			var broken []string
			for _, v := range report.Failures() {
				broken = append(broken, v.Name)
			}
			want := strings.Fields(row.sentence)
			if len(broken) == 0 || !slices.Contains(broken, want[0]) || slices.ContainsFunc(broken, func(name string) bool { return !slices.Contains(want, name) }) {
				t.Errorf("%s: it is told that %v is broken, want %v", mistake, broken, want)
				for _, v := range report.Failures() {
					t.Log(mistake, v.Name, v.Detail)
				}
			}
			text, err := json.Marshal(report)
			if err != nil || strings.Contains(string(text), "token.") || strings.Contains(string(text), "signature-") {
				t.Errorf("%s: the report tells a secret: %s", mistake, text)
			}
		})
	}
}

// TestSilentWorkerIsReportedOnce, with what it printed.
func TestSilentWorkerIsReportedOnce(t *testing.T) {
	t.Parallel()
	report := check(t, nil, []string{"work"}, "/bin/sh", "-c", "echo nothing to do; exit 3")
	failures := report.Failures()
	if len(failures) != 1 || failures[0].Name != "started" || !strings.Contains(failures[0].Detail, "nothing to do") {
		t.Errorf("the failures are %+v", failures)
	}
}

func TestUnknownScenarioIsAnError(t *testing.T) {
	t.Parallel()
	_, err := conformance.Check(t.Context(), conformance.Config{Command: []string{"true"}, Clock: clock.System{}, Only: []string{"other"}})
	if err == nil || !strings.Contains(err.Error(), `"other"`) || !strings.Contains(err.Error(), "renewal") {
		t.Errorf("the error is %v", err)
	}
	_, err = conformance.Check(t.Context(), conformance.Config{Command: []string{filepath.Join(t.TempDir(), "none")}, Clock: clock.System{}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

// TestPlaneRefusesWrongToken: it is a control plane for a worker that is
// right.
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
		t.Errorf("the answer is %s", resp.Status)
	}
}
