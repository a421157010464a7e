//go:build unix

package wrap

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/conformance"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// setupJob is like setup, for a task with a program.
func setupJob(t *testing.T, p contract.EnvelopeProgram) *fixture {
	t.Helper()
	plane, err := conformance.NewPlane(clock.System{}, contract.TaskEnvelope{
		TaskID: "job-1", Attempt: 1, HeartbeatIntervalMS: 50, HeartbeatTimeoutMS: heartbeatTimeout.Milliseconds(), CancelGracePeriodMS: cancelGrace.Milliseconds(), Program: &p,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plane.Close)
	variable, err := plane.Variable()
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, plane, t.TempDir(), []string{variable, contract.CompletionVariable + "=exit"}}
}

// TestResultIsGivenUpInTime simulates a control plane that is gone when the program ends. The
// attempt has no deadline.
func TestResultIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		script string
		code   int
	}{"success": {"exit 0", 0}, "failure": {"exit 3", 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setupJob(t, contract.EnvelopeProgram{SuccessCodes: []int{0}})
			gone := file(t, "gone")
			cmd, out := self(t, s.env, ReportFlag+"=1s", "sh", "-c", "echo >"+gone+".ready; while [ ! -e "+gone+" ]; do sleep 0.01; done; "+row.script)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			appears(t, gone+".ready")
			s.plane.Close()
			if err := os.WriteFile(gone, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := ended(t, cmd.Wait(), out); got.code != row.code {
				t.Errorf("got code %d, want that of the program, %d", got.code, row.code)
			}
		})
	}
}

// TestStartIsGivenUpInTime starts a wrapper whose server is gone. Its program is not started.
func TestStartIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	s := setupJob(t, contract.EnvelopeProgram{SuccessCodes: []int{0}})
	s.plane.Close()
	begun := file(t, "begun")
	cmd, out := self(t, s.env, ReportFlag+"=1s", "sh", "-c", "echo >"+begun)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, cmd.Wait(), out); got.code == 0 || !strings.Contains(got.stderr, "cannot start the work") {
		t.Errorf("got code %d and %q, want a failure to start", got.code, got.stderr)
	}
	if _, err := os.Stat(begun); err == nil {
		t.Error("the program has begun")
	}
}

// exit returns the exit that completed reports.
func (s *fixture) exit() contract.Exit {
	s.t.Helper()
	text, err := json.Marshal(s.completed()["exit"])
	if err != nil {
		s.t.Fatal(err)
	}
	var e contract.Exit
	if err := json.Unmarshal(text, &e); err != nil {
		s.t.Fatal(err)
	}
	return e
}

func TestExitOfAProgramIsReported(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		script    string
		successes []int
		outcome   string
		exit      contract.Exit
	}{
		"success":                {"exit 0", []int{0}, "SUCCEEDED", contract.Exit{}},
		"failure":                {"exit 3", []int{0}, "FAILED", contract.Exit{Code: 3}},
		"mapped to success":      {"exit 3", []int{0, 3}, "SUCCEEDED", contract.Exit{Code: 3}},
		"zero mapped to failure": {"exit 0", []int{3}, "FAILED", contract.Exit{}},
		"signal":                 {"kill -SEGV $$", []int{0}, "FAILED", contract.Exit{Code: 139, Signal: 11}},
		"code of a signal":       {"exit 139", []int{0}, "FAILED", contract.Exit{Code: 139}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setupJob(t, contract.EnvelopeProgram{SuccessCodes: row.successes})
			if got := s.run("sh", "-c", row.script); got.stdout+got.stderr != "" {
				t.Errorf("got output %q and %q, want that of the program alone", got.stdout, got.stderr)
			}
			if got := s.completed()["outcome"]; got != row.outcome || s.exit() != row.exit {
				t.Errorf("got %v with %+v, want %s with %+v", got, s.exit(), row.outcome, row.exit)
			}
		})
	}
}

// TestOutputOfAProgramIsUploaded uses the flags and the file of the task.
func TestOutputOfAProgramIsUploaded(t *testing.T) {
	t.Parallel()
	s := setupJob(t, contract.EnvelopeProgram{
		SuccessCodes: []int{0}, Output: &contract.ProgramOutput{Path: "made.csv", FileName: "report.csv", ContentType: "text/csv"},
	})
	if got := s.run("sh", "-c", `printf 'a,b' > "$SORTIE_OUTPUT"; echo "${SORTIE_COMPLETION-none} ${TASK_ENVELOPE-none}"`); got.code != 0 || got.stdout != "none none\n" {
		t.Errorf("got code %d and output %q, want 0 and none of the task's variables", got.code, got.stdout)
	}
	output, _ := s.completed()["output"].(map[string]any)
	if content, _ := s.plane.Object("exports/job-1/output"); string(content) != "a,b" || output["fileName"] != "report.csv" {
		t.Errorf("got output %q as %v, want a,b as report.csv", content, output)
	}
	for _, put := range s.of("put") {
		if strings.HasSuffix(put.Path, "/output") && put.Header.Get("Content-Type") != "text/csv" {
			t.Errorf("got content type %s, want text/csv", put.Header.Get("Content-Type"))
		}
	}
}

// TestNamedSecretIsMasked uses a short secret in a variable that is not one of those that are
// always masked.
func TestNamedSecretIsMasked(t *testing.T) {
	t.Parallel()
	s := setupJob(t, contract.EnvelopeProgram{SuccessCodes: []int{0}, SecretVariables: []string{"PIN"}})
	s.env = append(s.env, "PIN=4711", "LEVEL=4712")
	got := s.run("sh", "-c", `echo "pin $PIN level $LEVEL"`)
	if want := "pin [redacted] level 4712\n"; got.stdout != want || s.log() != want {
		t.Errorf("got output %q and log %q, want %q", got.stdout, s.log(), want)
	}
}

func TestInputOfATaskIsTheStandardInput(t *testing.T) {
	t.Parallel()
	input := strings.Repeat("line\n", 40_000) // more than a pipe holds
	calls := make(chan struct{}, 100)
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls <- struct{}{}; len(calls) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable) // it is read again
			return
		}
		_, _ = w.Write([]byte(input))
	}))
	t.Cleanup(bucket.Close)
	from := &contract.Download{URL: bucket.URL + "/input?X-Amz-Signature=secret", Size: int64(len(input))}
	for _, row := range []struct{ script, output string }{{"wc -c", "200000"}, {"echo ignored", "ignored"}} {
		s := setupJob(t, contract.EnvelopeProgram{SuccessCodes: []int{0}, Input: from})
		if got := s.run("sh", "-c", row.script); got.code != 0 || strings.TrimSpace(got.stdout) != row.output {
			t.Errorf("%s: got code %d and output %q, want 0 and %s", row.script, got.code, got.stdout, row.output)
		}
	}
}

// TestOutputOfAJobIsBelowItsFolder has programs that succeed, with paths that lead to a file of another folder.
func TestOutputOfAJobIsBelowItsFolder(t *testing.T) {
	t.Parallel()
	secret := file(t, "secret")
	if err := os.WriteFile(secret, []byte("of the owner"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ path, script, want string }{
		"a file":                    {"out/a.csv", `mkdir out; printf mine > out/a.csv`, "mine"},
		"an absolute path below":    {"$PWD/a.csv", `printf mine > a.csv`, "mine"},
		"an absolute path":          {secret, "true", ""},
		"a path out of the folder":  {"../secret", `cp ` + secret + ` ../secret`, ""},
		"a symbolic link":           {"link", `ln -s ` + secret + ` link`, ""},
		"a link below the folder":   {"link", `printf mine > a; ln -s a link`, ""},
		"a folder that is a link":   {"there/secret", `ln -s "$(dirname ` + secret + `)" there`, ""},
		"a hard link":               {"hard", `ln ` + secret + ` hard`, ""},
		"a named pipe":              {"pipe", `mkfifo pipe`, ""},
		"a folder":                  {"folder", `mkdir folder`, ""},
		"a link in place of a file": {"a", `printf mine > a; rm a; ln -s ` + secret + ` a`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			output := &contract.ProgramOutput{Path: strings.Replace(row.path, "$PWD", dir, 1), FileName: "a"}
			s := setupJob(t, contract.EnvelopeProgram{SuccessCodes: []int{0}, Output: output})
			s.dir = dir
			s.run("sh", "-c", row.script)
			content, _ := s.plane.Object("exports/job-1/output")
			outcome := "SUCCEEDED"
			if row.want == "" {
				outcome = "FAILED"
			}
			if got := s.completed()["outcome"]; got != outcome || string(content) != row.want {
				t.Errorf("got %v and %q, want %s and %q", got, content, outcome, row.want)
			}
		})
	}
}

// TestInputsAreAFile gives a program its inputs as a file that ends with it.
func TestInputsAreAFile(t *testing.T) {
	t.Parallel()
	s := setupJob(t, contract.EnvelopeProgram{SuccessCodes: []int{0}})
	const inputs = `{"text":"a'\"$(id)\n{{runId}}"}`
	s.env = append(s.env, contract.InputsVariable+"="+inputs)
	path := file(t, "path")
	got := s.run("sh", "-c", `cat "$SORTIE_INPUTS_FILE"; ls -l "$SORTIE_INPUTS_FILE" | cut -c1-10 >&2; printf %s "$SORTIE_INPUTS_FILE" > `+path)
	if got.stdout != inputs || !strings.Contains(got.stderr, "-rw-------") {
		t.Errorf("got %q with the mode %q, want %q of this user alone", got.stdout, got.stderr, inputs)
	}
	name, err := os.ReadFile(path)
	if _, gone := os.Stat(string(name)); err != nil || !os.IsNotExist(gone) {
		t.Errorf("got %v and %v, want no file after the end", err, gone)
	}
}

// TestUpstreamIsAFile gives a program the runs that it came after as a file, whether they are in a
// variable or at a URL.
func TestUpstreamIsAFile(t *testing.T) {
	t.Parallel()
	const upstream = `{"extract":{"runId":"r","state":"Completed"}}`
	calls := 0
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(upstream))
	}))
	t.Cleanup(bucket.Close)
	for _, variable := range []string{contract.UpstreamVariable + "=" + upstream, contract.UpstreamURLVariable + "=" + bucket.URL + "/?X-Amz-Signature=secret"} {
		s := setupJob(t, contract.EnvelopeProgram{SuccessCodes: []int{0}})
		s.env = append(s.env, variable)
		if got := s.run("sh", "-c", `cat "$SORTIE_UPSTREAM_FILE"`); got.stdout != upstream {
			t.Errorf("%s: got %q, want %q", variable, got.stdout, upstream)
		}
	}
}
