package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ran is the result of a command.
type ran struct {
	code           int
	stdout, stderr string
}

// runs runs a program in dir on the server at url.
func runs(t *testing.T, dir, url string, args ...string) ran {
	t.Helper()
	s := start(t, dir, append([]string{"run", "--url", url}, args...)...)
	return ran{s.exit(t), s.stdout.String(), s.stderr.String()}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProgramRunsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := dev(t, dir, "--addr", "127.0.0.1:0", "--image", "shell=/bin/sh -e")
	write(t, dir, "names.txt", "b\na\n")
	write(t, dir, "job.yaml", "id: nightly\nschedule: '@daily'\nimage: shell\ncommand: [-c, 'cat; echo $LEVEL']\nenv: {LEVEL: info}\ninput: \"text\\n\"\n")
	for name, row := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"output":                {[]string{"exec:/bin/echo", "--", "hello", "--json"}, 0, "hello --json\n", "exit code 0\n"},
		"a failure":             {[]string{"exec:false"}, 1, "", "exit code 1\n"},
		"standard error":        {[]string{"exec:/bin/sh", "--", "-c", "echo out; echo err >&2; exit 3"}, 1, "out\n", "err\nexit code 3\n"},
		"an unknown program":    {[]string{"exec:/no/such/program"}, 1, "", "sortie-exec: exec: \"/no/such/program\": stat /no/such/program: no such file or directory\nexit code 127\n"},
		"a bound image":         {[]string{"shell", "--", "-c", "false; true"}, 1, "", "exit code 1\n"},
		"input":                 {[]string{"exec:sort", "--input", "names.txt"}, 0, "a\nb\n", ""},
		"variables":             {[]string{"exec:/bin/sh", "--env", "A=b=c", "--", "-c", `echo "$A"`}, 0, "b=c\n", ""},
		"a job file":            {[]string{"-f", "job.yaml"}, 0, "text\ninfo\n", ""},
		"a job file with flags": {[]string{"-f", "job.yaml", "--env", "LEVEL=warn", "--input", "names.txt"}, 0, "b\na\nwarn\n", ""},
		"arguments of a file":   {[]string{"-f", "job.yaml", "--", "-c", "echo other"}, 0, "other\n", ""},
		"standard output":       {[]string{"exec:/bin/sh", "-o", "-", "--output-path", "x", "--", "-c", "printf data > x"}, 0, "data", ""},
	} {
		if got := runs(t, dir, url, row.args...); got.code != row.code || got.stdout != row.stdout || !strings.Contains(got.stderr, row.stderr) {
			t.Errorf("%s: got %+v, want %d, %q and %q", name, got, row.code, row.stdout, row.stderr)
		}
	}
}

func TestOutputOfAProgramIsSaved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := dev(t, dir, "--addr", "127.0.0.1:0")
	got := runs(t, dir, url, "exec:/bin/sh", "--output", "report.csv", "--json", "--", "-c", `printf 'a,b' > "$SORTIE_OUTPUT"; echo done`)
	var shown struct {
		State, Log string
		Output     struct{ FileName string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &shown); err != nil || got.code != 0 || shown.State != "Completed" || shown.Log != "done\n" || shown.Output.FileName != "report.csv" {
		t.Errorf("got %+v (%v), want the completed run with its log and report.csv", got, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "report.csv")); err != nil || string(text) != "a,b" {
		t.Errorf("got file %q (%v), want a,b", text, err)
	}
	detached := runs(t, dir, url, "exec:/bin/true", "--detach")
	if id := strings.TrimSpace(detached.stdout); detached.code != 0 || !strings.HasPrefix(id, "job_") || strings.Contains(id, "\n") {
		t.Errorf("got %+v, want the run's id alone", detached)
	}
}

func TestInterruptCancelsTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := dev(t, dir, "--addr", "127.0.0.1:0")
	s := start(t, dir, "run", "--url", url, "exec:/bin/sh", "--", "-c", "echo began; exec sleep 600")
	s.stdout.next(t, "began")
	s.signal(t, syscall.SIGINT)
	if code := s.exit(t); code != 7 || !strings.Contains(s.stderr.String(), "was cancelled") {
		t.Errorf("got exit code %d and %s, want 7 and the cancellation", code, s.stderr)
	}
}

// The program waits for a file. The test writes it when it has read the first lines.
func TestOutputOfAProgramIsFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := dev(t, dir, "--addr", "127.0.0.1:0")
	name := filepath.Join(dir, "go")
	script := `echo first; echo problem >&2; while [ ! -e ` + name + ` ]; do sleep 0.05; done; printf last`
	s := start(t, dir, "run", "--url", url, "exec:/bin/sh", "--", "-c", script)
	s.stdout.next(t, "first")
	write(t, dir, "go", "")
	if code := s.exit(t); code != 0 || s.stdout.String() != "first\nlast" || !strings.Contains(s.stderr.String(), "problem\n") {
		t.Errorf("got %d, %q and %q, want 0, first and last, and problem", code, s.stdout, s.stderr)
	}
	task, _, _ := strings.Cut(s.stderr.String(), "\n")
	for args, want := range map[string]string{"-f": "first\n", "--stream stderr": "problem\n", "--stream stdout --tail 1": "last"} {
		logs := start(t, dir, append([]string{"logs", "--url", url, task}, strings.Fields(args)...)...)
		if code := logs.exit(t); code != 0 || !strings.Contains(logs.stdout.String(), want) {
			t.Errorf("logs %s: got %d and %q, want 0 and %q", args, code, logs.stdout, want)
		}
	}
}

// TestOwnScriptsRun runs scripts of the user's folder, from the command line and from job files.
func TestOwnScriptsRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := dev(t, dir, "--addr", "127.0.0.1:0")
	jobs := filepath.Join(dir, "jobs")
	if err := os.Mkdir(jobs, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "hello.sh", "cat names.txt 2>/dev/null || echo hello\n")
	write(t, jobs, "script.sh", "cat \"$1\"\n")
	write(t, jobs, "names.txt", "Ada\n")
	write(t, jobs, "nightly.yaml", "id: nightly\nimage: exec:sh\ncommand: [script.sh, names.txt]\n")
	for name, row := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"a script":         {[]string{"run", "exec:sh", "--", "hello.sh"}, 0, "hello\n", ""},
		"a job file":       {[]string{"run", "-f", "jobs/nightly.yaml"}, 0, "Ada\n", ""},
		"a path":           {[]string{"run", "/bin/echo", "--", "x"}, 2, "", "want exec:/bin/echo"},
		"a name":           {[]string{"run", "echo", "--", "x"}, 1, "", "the program of that name is exec:echo"},
		"a limit":          {[]string{"run", "exec:sleep", "--timeout", "3s", "--", "600"}, 1, "", "the run failed"},
		"a limit too long": {[]string{"run", "exec:sleep", "--timeout", "10000h", "--", "600"}, 2, "", "--timeout: 10000h0m0s is out of range"},
	} {
		s := start(t, dir, append(row.args[:1], append([]string{"--url", url}, row.args[1:]...)...)...)
		if code := s.exit(t); code != row.code || s.stdout.String() != row.stdout || !strings.Contains(s.stderr.String(), row.stderr) {
			t.Errorf("%s: got %d, %q and %s, want %d, %q and %q", name, code, s.stdout, s.stderr, row.code, row.stdout, row.stderr)
		}
	}
	if s := start(t, dir, "jobs", "apply", "-f", "jobs/nightly.yaml", "--url", url); s.exit(t) != 0 {
		t.Fatal(s.stderr)
	}
	waited := start(t, dir, "jobs", "run", "nightly", "--wait", "--url", url)
	if code := waited.exit(t); code != 0 || !strings.Contains(waited.stderr.String(), "Completed") {
		t.Errorf("got %d and %s, want the states until the end", code, waited.stderr)
	}
	if logs := start(t, dir, "logs", strings.TrimSpace(waited.stdout.String()), "--url", url); logs.exit(t) != 0 || logs.stdout.String() != "Ada\n" {
		t.Errorf("got %q and %s, want what the script wrote", logs.stdout, logs.stderr)
	}
	list := start(t, dir, "runs", "--url", url)
	for _, want := range []string{"WHAT", "job nightly", "sh hello.sh"} {
		if list.exit(t) != 0 || !strings.Contains(list.stdout.String(), want) {
			t.Errorf("got %s, want %q", list.stdout, want)
		}
	}
}
