//go:build unix

package main

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/conformance"
)

func TestAProgramIsRunAsATask(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	name := file(t, "out.xml")
	got := s.run("--output", name, "--content-type=application/xml", "sh", "-c", `
		echo '{"progressPct":45.7,"message":"reading","rowCount":3,"metrics":{"pages":9}}' >&$SORTIE_PROGRESS_FD
		echo "out $SORTIE_TASK_ID $SORTIE_ATTEMPT ${TASK_ENVELOPE-none}"; echo err >&2
		printf '<mods/>' > "$SORTIE_OUTPUT"; sleep 0.4`)
	if got.code != 0 || got.stdout != "out task-1 2 none\n" || got.stderr != "err\n" {
		t.Errorf("it ends with %d and prints\n%s%s", got.code, got.stdout, got.stderr)
	}
	heartbeats := s.of("heartbeat")
	if len(heartbeats) < 2 || heartbeats[len(heartbeats)-1].Fields["progressPct"] != 45.0 || heartbeats[len(heartbeats)-1].Fields["message"] != "reading" {
		t.Errorf("%d heartbeats", len(heartbeats))
	}
	if content, _ := s.plane.Object("exports/task-1/output"); string(content) != "<mods/>" {
		t.Errorf("the output is %q", content)
	}
	for _, put := range s.of("put") {
		if strings.Contains(put.Path, "exports/") && put.Header.Get("Content-Type") != "application/xml" {
			t.Errorf("the output is %s", put.Header.Get("Content-Type"))
		}
	}
	if log := s.log(); !strings.Contains(log, "out task-1") || !strings.Contains(log, "err\n") {
		t.Errorf("the log is %q", log)
	}
	end := s.completed()
	if diff := cmp.Diff(map[string]any{"outputPath": "exports/task-1/output", "fileName": "out.xml", "byteSize": 7.0, "rowCount": 3.0}, end["output"]); diff != "" {
		t.Error(diff)
	}
	metrics, _ := end["metrics"].(map[string]any)
	if end["outcome"] != "SUCCEEDED" || metrics["pages"] != 9.0 || metrics["peakMemoryBytes"] == nil || s.of("started")[0].Fields["handlesSigterm"] != true {
		t.Errorf("completed is %v", end)
	}
}

// TestAnEndIsReportedAsWhatItMeans: and sortie-exec ends in the same way.
func TestAnEndIsReportedAsWhatItMeans(t *testing.T) {
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
		{[]string{"sh", "-c", "kill -9 $$"}, 137, "INFRASTRUCTURE", nil, "ended by signal 9 (killed), mostly for want of memory"},
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
			t.Errorf("%q ends with %d: %v", row.args, got.code, s.completed())
		}
	}
}

// cancelled tells each heartbeat that a cancel is wished.
func cancelled(c *conformance.Call, _ int) *conformance.Answer {
	if c.Endpoint != "heartbeat" {
		return nil
	}
	return &conformance.Answer{Status: http.StatusOK, Body: map[string]any{"acknowledged": true, "shouldCancel": true}}
}

// TestACancelledProgramGetsTimeToCleanUp: SIGTERM reaches it, what it says is
// kept, and an exit code of 0 is no success.
func TestACancelledProgramGetsTimeToCleanUp(t *testing.T) {
	t.Parallel()
	s := setup(t, cancelled)
	got := s.run("sh", "-c", `trap 'echo cleaned up; echo "{\"partialProgress\":{\"rows\":5},\"phase\":\"reading\"}" >&3; exit 0' TERM; sleep 30 & wait`)
	end := s.completed()
	if got.code != exitSelf || end["outcome"] != "CANCELLED" || end["cancelledDuringPhase"] != "reading" || !strings.Contains(s.log(), "cleaned up") {
		t.Errorf("it ends with %d: %v, log %q", got.code, end, s.log())
	}
	if diff := cmp.Diff(map[string]any{"rows": 5.0}, end["partialProgress"]); diff != "" {
		t.Error(diff)
	}
}

// TestAProgramThatDoesNotListenIsKilledWithItsChildren: within the grace, and
// the cancel is reported.
func TestAProgramThatDoesNotListenIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	s := setup(t, cancelled)
	name := file(t, "pid")
	begun := time.Now()
	got := s.run("--kill-after=200ms", "sh", "-c", `trap '' TERM; sh -c 'trap "" TERM; echo $$ > "$0"; while :; do sleep 1; done' `+name+` & while :; do sleep 1; done`)
	if got.code != 137 || s.completed()["outcome"] != "CANCELLED" || time.Since(begun) > 4*time.Second {
		t.Errorf("it ends with %d after %s: %v", got.code, time.Since(begun), s.completed())
	}
	child, err := strconv.Atoi(appears(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, 0); err == nil && !zombie(child) {
		t.Errorf("its child %d lives on", child)
	}
}

func zombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}

// TestNothingIsReportedAfterTheAttemptWasDeclaredDead, and the program ends at
// once.
func TestNothingIsReportedAfterTheAttemptWasDeclaredDead(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *conformance.Call, _ int) *conformance.Answer {
		if c.Endpoint != "heartbeat" {
			return nil
		}
		return &conformance.Answer{Status: http.StatusGone, Body: map[string]any{"error": "task_expired"}}
	})
	begun := time.Now()
	got := s.run("sh", "-c", `trap '' TERM; while :; do sleep 1; done`)
	if got.code != exitSelf || len(s.of("completed")) != 0 || s.log() != "" || time.Since(begun) > 3*time.Second {
		t.Errorf("it ends with %d after %s", got.code, time.Since(begun))
	}
}

// TestSignalsArePassedOn: SIGTERM as one, and the others as they are.
func TestSignalsArePassedOn(t *testing.T) {
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
		t.Errorf("it ends with %d: %s, and %d completed", got.code, got.stdout, len(s.of("completed")))
	}
}

func TestOrphansAreWaitedFor(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc, as Linux has it")
	}
	s := setup(t, nil)
	name := file(t, "pid")
	// The grandchild loses its parent, leaves the group and ends.
	got := s.run("sh", "-c", `sh -c 'sh -c "echo \$\$ > `+name+`" & exit 0'; while [ ! -s `+name+` ]; do sleep 0.01; done
		i=0; while [ -e /proc/$(cat `+name+`) ] && [ $i -lt 200 ]; do sleep 0.02; i=$((i+1)); done; [ ! -e /proc/$(cat `+name+`) ]`)
	if got.code != 0 {
		t.Errorf("a zombie is left: %d", got.code)
	}
}

func TestALogIsCutInTheMiddle(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	s.run("--log-limit=4000", "sh", "-c", `i=0; while [ $i -lt 5000 ]; do echo "line $i"; i=$((i+1)); done`)
	log := s.log()
	if len(log) > 4100 || !strings.HasPrefix(log, "line 0\n") || !strings.HasSuffix(log, "line 4999\n") || !strings.Contains(log, " bytes are cut here]") {
		t.Errorf("the log has %d bytes: %.40q", len(log), log)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
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
		{nil, []string{"true"}, "there is no task"},
		{nil, []string{"true"}, "--standalone"},
		{s.env, nil, "no CMD"},
		{s.env, []string{"--exit", "0=USER_CODE", "true"}, "exit"},
		{s.env, []string{"--nonsense", "true"}, "nonsense"},
		{s.env, []string{"true"}, "the work was not begun: the task is cancelled"},
		{[]string{"TASK_ENVELOPE={"}, []string{"true"}, "TASK_ENVELOPE is not valid"},
		{[]string{"CALLBACK_URL=http://127.0.0.1:1/", "TASK_ID=t"}, []string{"--output=x", "true"}, "--output needs"},
	} {
		cmd, out := self(t, row.env, row.args...)
		if got := ended(t, cmd.Run(), out); got.code != exitSelf || !strings.Contains(got.stderr, row.want) || strings.Contains(got.stderr, "token.") {
			t.Errorf("%q ends with %d and says %q, want %q", row.args, got.code, got.stderr, row.want)
		}
	}
}

func TestAProgramRunsAloneWhereThatIsWanted(t *testing.T) {
	t.Parallel()
	cmd, out := self(t, nil, "--standalone", "sh", "-c", "echo 50 >&$SORTIE_PROGRESS_FD; cat; exit 3")
	cmd.Stdin = strings.NewReader("input")
	if got := ended(t, cmd.Run(), out); got.code != 3 || got.stdout != "input" {
		t.Errorf("it ends with %d and prints %q", got.code, got.stdout)
	}
	cmd, out = self(t, nil, "--help")
	if got := ended(t, cmd.Run(), out); got.code != 0 || got.stdout != help {
		t.Errorf("help ends with %d", got.code)
	}
}

// TestAMissingOutputIsAFailure: a program that promised one and left none.
func TestAMissingOutputIsAFailure(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	got := s.run("--output", file(t, "none"), "true")
	if e, _ := s.completed()["error"].(map[string]any); got.code != exitSelf || e["category"] != "USER_CODE" || e["retryable"] != false {
		t.Errorf("it ends with %d: %v", got.code, s.completed())
	}
}
