//go:build unix

package wrap

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/sortie/conformance"
	"github.com/sortie-dev/sortie/shared/base/redact"
)

func TestProgramRunsAsTask(t *testing.T) {
	t.Parallel()
	name, reported := file(t, "out.xml"), file(t, "reported")
	s := setup(t, func(c *conformance.Call, n int) *conformance.Answer {
		if c.Endpoint == "heartbeat" && n > 0 && c.Fields["progressPct"] == 45.0 {
			if err := os.WriteFile(reported, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	got := s.run("--output", name, "--content-type=application/xml", "sh", "-c", `
		echo '{"progressPct":45.7,"message":"reading","rowCount":3,"metrics":{"pages":9}}' >&$SORTIE_PROGRESS_FD
		echo "out $SORTIE_TASK_ID $SORTIE_ATTEMPT ${TASK_ENVELOPE-none} $TRACEPARENT"; echo err >&2
		printf '<mods/>' > "$SORTIE_OUTPUT"; while [ ! -e `+reported+` ]; do sleep 0.02; done`)
	if got.code != 0 || got.stdout != "out task-1 2 none 00-of-the-envelope\n" || !slices.Contains(strings.Split(got.stderr, "\n"), "err") {
		t.Errorf("got code %d, output %q and %q, want 0, the variables and err", got.code, got.stdout, got.stderr)
	}
	heartbeats := s.of("heartbeat")
	if len(heartbeats) < 2 || heartbeats[len(heartbeats)-1].Fields["progressPct"] != 45.0 || heartbeats[len(heartbeats)-1].Fields["message"] != "reading" {
		t.Errorf("got %d heartbeats, want the last with 45 and reading", len(heartbeats))
	}
	if content, _ := s.plane.Object("exports/task-1/output"); string(content) != "<mods/>" {
		t.Errorf("got output %q, want <mods/>", content)
	}
	for _, put := range s.of("put") {
		if strings.Contains(put.Path, "exports/") && put.Header.Get("Content-Type") != "application/xml" {
			t.Errorf("got content type %s, want application/xml", put.Header.Get("Content-Type"))
		}
	}
	if log := s.log(); !strings.Contains(log, "out task-1") || !strings.Contains(log, "err\n") {
		t.Errorf("got log %q, want both streams", log)
	}
	end := s.completed()
	if diff := cmp.Diff(map[string]any{
		"outputPath": "exports/task-1/output", "fileName": "out.xml", "byteSize": 7.0, "rowCount": 3.0,
		"digest": "sha256:d1db5150183cf57a14940e9bf8bd5096f9a8bba6d5c962c8533c668508a11493", // of <mods/>
	}, end["output"]); diff != "" {
		t.Error(diff)
	}
	metrics, _ := end["metrics"].(map[string]any)
	if end["outcome"] != "SUCCEEDED" || metrics["pages"] != 9.0 || metrics["peakMemoryBytes"] == nil || s.of("started")[0].Fields["handlesSigterm"] != true {
		t.Errorf("got completed %v, want SUCCEEDED with metrics", end)
	}
}

// TestExitCodeSelectsTheCategory also checks that the exit code of sortie-exec is that of the
// program.
func TestExitCodeSelectsTheCategory(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args      []string
		code      int
		category  string
		retryable any
		message   string
	}{
		{[]string{"sh", "-c", "echo 'KeyError: x' >&2; exit 1"}, 1, "USER_CODE", nil, "exit code 1: KeyError: x"},
		{[]string{"--retryable-exit=3-5", "sh", "-c", "exit 4"}, 4, "USER_CODE", true, "exit code 4"},
		{[]string{"--exit", "9=DATA_QUALITY", "--final-exit=9", "--", "sh", "-c", "exit 9"}, 9, "DATA_QUALITY", false, "exit code 9"},
		{[]string{"sh", "-c", "exit 75"}, 75, "INFRASTRUCTURE", nil, "exit code 75"},
		{[]string{"--user-exit=75", "sh", "-c", "exit 75"}, 75, "USER_CODE", nil, "exit code 75"},
		{[]string{"sh", "-c", "kill -9 $$"}, 137, "INFRASTRUCTURE", nil, "ended by signal 9 (killed), usually out of memory"},
		{[]string{"sh", "-c", "exit 137"}, 137, "INFRASTRUCTURE", nil, "exit code 137"},
		{[]string{"sh", "-c", "exit 143"}, 143, "INFRASTRUCTURE", nil, "exit code 143"},
		{[]string{"sh", "-c", "kill -SEGV $$"}, 139, "USER_CODE", nil, "ended by signal 11 (segmentation fault)"},
		{[]string{"/no/such/program"}, 127, "CONFIGURATION", false, "cannot run the program: fork/exec /no/such/program: no such file or directory"},
		{[]string{"/"}, 126, "CONFIGURATION", false, "cannot run the program: exec: \"/\": is a directory"},
		{
			[]string{"sh", "-c", `echo '{"error":{"category":"DATA_QUALITY","message":"row 7","retryable":true}}' >&3; exit 1`},
			1, "DATA_QUALITY", true, "row 7",
		},
	} {
		s := setup(t, nil)
		got := s.run(row.args...)
		e, _ := s.completed()["error"].(map[string]any)
		message, _ := e["message"].(string)
		if row.code == 126 || row.code == 127 {
			message = message[:min(len(message), 23)]
			row.message = row.message[:23]
		}
		if got.code != row.code || s.completed()["outcome"] != "FAILED" || e["category"] != row.category || e["retryable"] != row.retryable || message != row.message {
			t.Errorf("%q: got code %d, completed %v, want code %d, %s, retryable %v, %q", row.args, got.code, s.completed(), row.code, row.category, row.retryable, row.message)
		}
	}
}

// cancelledOnce responds to every heartbeat with a cancel request after the file exists,
// because then the program has set its trap.
func cancelledOnce(name string) func(*conformance.Call, int) *conformance.Answer {
	return func(c *conformance.Call, _ int) *conformance.Answer {
		if _, err := os.Stat(name); err != nil || c.Endpoint != "heartbeat" {
			return nil
		}
		return &conformance.Answer{Status: http.StatusOK, Body: map[string]any{"acknowledged": true, "shouldCancel": true}}
	}
}

// TestCancelledProgramCleansUp checks that the program gets SIGTERM, that its progress is
// reported, and that its exit code 0 is not a success.
func TestCancelledProgramCleansUp(t *testing.T) {
	t.Parallel()
	name := file(t, "ready")
	s := setup(t, cancelledOnce(name))
	got := s.run("sh", "-c", `trap 'echo cleaned up; echo "{\"partialProgress\":{\"rows\":5},\"phase\":\"reading\"}" >&3; exit 0' TERM; echo >`+name+`; sleep 30 & wait`)
	end := s.completed()
	if got.code != exitSelf || end["outcome"] != "CANCELLED" || end["cancelledDuringPhase"] != "reading" || !strings.Contains(s.log(), "cleaned up") {
		t.Errorf("got code %d, completed %v, log %q, want 125, CANCELLED during reading, cleaned up", got.code, end, s.log())
	}
	if diff := cmp.Diff(map[string]any{"rows": 5.0}, end["partialProgress"]); diff != "" {
		t.Error(diff)
	}
}

func TestProgramThatIgnoresCancelIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	name := file(t, "pid")
	s := setup(t, cancelledOnce(name))
	got := s.run("--kill-after=200ms", "sh", "-c", `trap '' TERM; sh -c 'trap "" TERM; echo $$ > "$0"; while :; do sleep 1; done' `+name+` & while :; do sleep 1; done`)
	if got.code != 137 || s.completed()["outcome"] != "CANCELLED" {
		t.Errorf("got code %d, completed %v, want 137 and CANCELLED", got.code, s.completed())
	}
	child, err := strconv.Atoi(appears(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, 0); err == nil && !zombie(child) {
		t.Errorf("got a live child %d, want it killed", child)
	}
}

func zombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}

func TestExpiredAttemptIsNotReported(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *conformance.Call, _ int) *conformance.Answer {
		if c.Endpoint != "heartbeat" {
			return nil
		}
		return &conformance.Answer{Status: http.StatusGone, Body: map[string]any{"error": "task_expired"}}
	})
	got := s.run("sh", "-c", `trap '' TERM; while :; do sleep 1; done`)
	if got.code != exitSelf || len(s.of("completed")) != 0 || s.log() != "" {
		t.Errorf("got code %d with %d completed, want 125 and none", got.code, len(s.of("completed")))
	}
}

func TestSignalsAreForwarded(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	name := file(t, "ready")
	cmd, out := self(t, s.env, "sh", "-c", `
		trap 'echo usr1; touched=1' USR1; trap 'echo term; exit 7' TERM; echo ready > `+name+`
		while [ -z "$touched" ]; do sleep 0.02; done; echo seen > `+name+`.2; while :; do sleep 0.02; done`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	appears(t, name)
	_ = cmd.Process.Signal(syscall.SIGUSR1)
	appears(t, name+".2")
	_ = cmd.Process.Signal(syscall.SIGTERM)
	got := ended(t, cmd.Wait(), out)
	if got.code != 7 || got.stdout != "usr1\nterm\n" || len(s.of("completed")) != 0 {
		t.Errorf("got code %d, output %q, %d completed, want 7, usr1 and term, none", got.code, got.stdout, len(s.of("completed")))
	}
}

func TestOrphansAreReaped(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	name := file(t, "pid")
	// The grandchild loses its parent and ends.
	got := s.run("sh", "-c", `sh -c 'sh -c "echo \$\$ > `+name+`" & exit 0'; while [ ! -s `+name+` ]; do sleep 0.01; done
		i=0; while kill -0 $(cat `+name+`) && [ $i -lt 6000 ]; do sleep 0.02; i=$((i+1)); done 2>/dev/null; ! kill -0 $(cat `+name+`) 2>/dev/null`)
	if got.code != 0 {
		t.Errorf("got code %d and a zombie, want 0", got.code)
	}
}

func TestLongLogLosesItsMiddle(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	s.run("--log-limit=4000", "sh", "-c", `i=0; while [ $i -lt 5000 ]; do echo "line $i"; i=$((i+1)); done`)
	log := s.log()
	if len(log) > 4100 || !strings.HasPrefix(log, "line 0\n") || !strings.HasSuffix(log, "line 4999\n") || !strings.Contains(log, " bytes are cut out here]") {
		t.Errorf("got %d bytes: %.40q, want both ends in 4100", len(log), log)
	}
}

func TestUsageErrorsAreReported(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *conformance.Call, _ int) *conformance.Answer {
		if c.Endpoint != "started" {
			return nil
		}
		return &conformance.Answer{Status: http.StatusConflict, Body: map[string]any{"error": "task_already_terminal", "state": "CANCELLED"}}
	})
	for _, row := range []struct {
		env, args []string
		want      string
	}{
		{nil, []string{"true"}, "no task"},
		{nil, []string{"true"}, "--standalone"},
		{s.env, nil, "missing CMD"},
		{s.env, []string{"--exit", "0=USER_CODE", "true"}, "exit"},
		{s.env, []string{"--nonsense", "true"}, "nonsense"},
		{s.env, []string{"true"}, "cannot start the work: the task is cancelled"},
		{[]string{"TASK_ENVELOPE={"}, []string{"true"}, "invalid TASK_ENVELOPE"},
		{[]string{"CALLBACK_URL=http://127.0.0.1:1/", "TASK_ID=t"}, []string{"--output=x", "true"}, "--output needs"},
	} {
		cmd, out := self(t, row.env, row.args...)
		if got := ended(t, cmd.Run(), out); got.code != exitSelf || !strings.Contains(got.stderr, row.want) || strings.Contains(got.stderr, "token.") {
			t.Errorf("%q: got code %d, %q, want 125, %q", row.args, got.code, got.stderr, row.want)
		}
	}
}

func TestStandalone(t *testing.T) {
	t.Parallel()
	cmd, out := self(t, nil, "--standalone", "sh", "-c", "echo 50 >&$SORTIE_PROGRESS_FD; cat; exit 3")
	cmd.Stdin = strings.NewReader("input")
	if got := ended(t, cmd.Run(), out); got.code != 3 || got.stdout != "input" {
		t.Errorf("got code %d, output %q, want 3, input", got.code, got.stdout)
	}
	cmd, out = self(t, nil, "--help")
	if got := ended(t, cmd.Run(), out); got.code != 0 || got.stdout != help {
		t.Errorf("got code %d, output %q, want 0 and the help", got.code, got.stdout)
	}
}

func TestOutputIsRelativeToTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"out.csv", "../out.csv", filepath.Join(root, "out.csv")} {
		s := setup(t, nil)
		cmd, out := self(t, s.env, "--output", name, "sh", "-c", `printf "%s" "$SORTIE_OUTPUT" > "$SORTIE_OUTPUT"`)
		cmd.Dir = t.TempDir()
		if got := ended(t, cmd.Run(), out); got.code != 0 {
			t.Errorf("%s: got %+v, want code 0", name, got)
		}
		if content, _ := s.plane.Object("exports/task-1/output"); string(content) != name {
			t.Errorf("got output %q, want %q", content, name)
		}
	}
}

func TestOutputThatIsNoFileFailsTheTask(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"missing": "true", "directory": `mkdir "$SORTIE_OUTPUT"`, "named pipe": `mkfifo "$SORTIE_OUTPUT"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, nil)
			got := s.run("--output", file(t, "none"), "sh", "-c", script)
			if e, _ := s.completed()["error"].(map[string]any); got.code != exitSelf || e["category"] != "USER_CODE" || e["retryable"] != false {
				t.Errorf("got code %d, completed %v, want 125, USER_CODE, final", got.code, s.completed())
			}
		})
	}
}

// TestProgressIsSentBetweenHeartbeats uses an interval that is longer than the test, so only
// the progress line causes a heartbeat.
func TestProgressIsSentBetweenHeartbeats(t *testing.T) {
	t.Parallel()
	name := file(t, "go")
	s := setupInterval(t, time.Minute, func(c *conformance.Call, _ int) *conformance.Answer {
		if c.Endpoint == "heartbeat" && c.Fields["progressPct"] == 45.0 {
			if err := os.WriteFile(name, []byte("on\n"), 0o600); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	got := s.run("sh", "-c", `echo "45 reading" >&$SORTIE_PROGRESS_FD; i=0; while [ ! -e `+name+` ] && [ $i -lt 6000 ]; do sleep 0.02; i=$((i+1)); done; [ -e `+name+` ]`)
	if n := len(s.of("heartbeat")); got.code != 0 || n != 1 {
		t.Errorf("got code %d, %d heartbeats, want 0, 1", got.code, n)
	}
}

// TestOutputIsSentWhileTheProgramRuns uses a program that ends only after the control plane has
// received its first line.
func TestOutputIsSentWhileTheProgramRuns(t *testing.T) {
	t.Parallel()
	name := file(t, "go")
	s := setup(t, func(c *conformance.Call, _ int) *conformance.Answer {
		if c.Endpoint == "logs" {
			if err := os.WriteFile(name, []byte("on\n"), 0o600); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	got := s.run("sh", "-c", `echo first; i=0; while [ ! -e `+name+` ] && [ $i -lt 6000 ]; do sleep 0.02; i=$((i+1)); done; [ -e `+name+` ] && echo last >&2`)
	out, errs := s.plane.Output("stdout"), s.plane.Output("stderr")
	if got.code != 0 || out != "first\n" || errs != "last\n" {
		t.Errorf("got code %d, sent %q and %q, want 0, first and last", got.code, out, errs)
	}
	if _, uploaded := s.plane.Object(s.plane.Envelope().Log.Key); uploaded || s.of("started")[0].Fields["sendsOutput"] != true {
		t.Errorf("got an uploaded log (%t) and started %v, want sendsOutput and no upload of what was sent", uploaded, s.of("started")[0].Fields)
	}
	var order []string
	for _, c := range s.plane.Calls() {
		if c.Endpoint == "logs" || c.Endpoint == "completed" {
			order = append(order, c.Endpoint)
		}
	}
	if order[len(order)-1] != "completed" {
		t.Errorf("got the calls %q, want completed after the output", order)
	}
}

// TestLogIsUploadedIfOutputIsNotTaken makes the control plane refuse output. A program without
// a log uploads nothing.
func TestLogIsUploadedIfOutputIsNotTaken(t *testing.T) {
	t.Parallel()
	refuse := func(c *conformance.Call, _ int) *conformance.Answer {
		if c.Endpoint == "logs" {
			return &conformance.Answer{Status: http.StatusNotFound, Body: map[string]any{"code": "NOT_FOUND"}}
		}
		return nil
	}
	s := setup(t, refuse)
	s.run("sh", "-c", "echo hello; echo err >&2")
	metrics, _ := s.completed()["metrics"].(map[string]any)
	if text, _ := s.plane.Object(s.plane.Envelope().Log.Key); len(text) != len("hello\nerr\n") || metrics["outputBytesLost"] != nil {
		t.Errorf("got log %q and metrics %v, want both lines and nothing lost", text, metrics)
	}
	for _, args := range [][]string{{"--no-log"}, {"--log-limit=1000"}} {
		s := setup(t, nil)
		s.run(append(args, "sh", "-c", "echo hello")...)
		if n := len(s.of("logs")); n != 0 || s.of("started")[0].Fields["sendsOutput"] != nil {
			t.Errorf("%v: got %d calls with output, want none and no announcement", args, n)
		}
	}
}

// TestSecretsAreMaskedInTheOutput runs a program that prints its whole environment and that of
// sortie-exec.
func TestSecretsAreMaskedInTheOutput(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	keys := []string{"R2_ACCESS_KEY_ID=AKIA0123456789AB", "R2_SECRET_ACCESS_KEY=bucket-secret-0123456789"}
	callback := "https://plane.test/callback/t?token=callback-token-0123"
	s.env = append(s.env, append(keys, "CALLBACK_URL="+callback, "ALL="+s.env[0]+" "+callback+" bucket-secret-0123456789")...)
	got := s.run("sh", "-c", `env; env >&2; printf '%s' "$ALL"; exit 1`)
	reported, _ := s.completed()["error"].(map[string]any)
	for where, text := range map[string]string{"stdout": got.stdout, "stderr": got.stderr, "log": s.log(), "stack trace": reported["stackTrace"].(string)} { //nolint:forcetypeassert // a failure shows it
		for _, secret := range []string{s.plane.Envelope().TaskToken, "signature-", "AKIA0123456789AB", "bucket-secret", "callback-token"} {
			if strings.Contains(text, secret) {
				t.Errorf("got %s in the %s, want it masked", secret, where)
			}
		}
		if !strings.Contains(text, redact.Mask) || !strings.Contains(text, "SORTIE_TASK_ID=task-1") {
			t.Errorf("got %s %.200q, want the environment with masks", where, text)
		}
	}
}
