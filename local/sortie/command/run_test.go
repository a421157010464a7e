package command_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		"a field of the file":   {"run -f " + file, "line 3: schedul"},
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

// The request has what the command line says, and the input in base64.
func TestRunSendsTheDefinition(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte("id: a\nimage: b\nschedule: '@daily'\ncommand: [c]\ninput: text\nenv: {LEVEL: info, OLD: x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		args        []string
		stdin, want string
	}{
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

// compact returns JSON with its members in order.
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
