package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/twin/stack"
)

func TestSplitWordsAsAShellDoes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                       nil,
		"   ":                    nil,
		"/bin/worker":            {"/bin/worker"},
		" a  b\tc ":              {"a", "b", "c"},
		`'a b' "c d"e`:           {"a b", "c de"},
		`a\ b '' ""`:             {"a b", "", ""},
		`"a\"b\\c\d" 'e\f'`:      {`a"b\c\d`, `e\f`},
		`$HOME *.go`:             {"$HOME", "*.go"},
		"'it'\\''s'":             {"it's"},
		`--flag="some value" -x`: {"--flag=some value", "-x"},
	} {
		got, err := splitWords(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("splitWords(%q): %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{`'a`, `"a`, `a\`, `"a\"`} {
		if got, err := splitWords(text); err == nil {
			t.Errorf("splitWords(%q): got %q, want an error", text, got)
		}
	}
}

func FuzzSplitWords(f *testing.F) {
	for _, seed := range []string{"", "a b", `'a b'`, `"a\"b"`, `a\ b`, "\x00", "é 'ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, err := splitWords(text)
		if err != nil {
			return
		}
		// Quoted words split into the same words.
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		again, err := splitWords(strings.Join(quoted, " "))
		if err != nil || !cmp.Equal(words, again) {
			t.Errorf("%q: got %q, and quoted %q, error %v", text, words, again, err)
		}
	})
}

func TestImagesAreBoundToPrograms(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "my worker")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // it has to be executable
		t.Fatal(err)
	}
	got, err := images([]string{"registry/x:latest='" + program + "' --flag a=b", "sh=sh"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{program, "--flag", "a=b"}, got["registry/x:latest"]); diff != "" {
		t.Error(diff)
	}
	if !filepath.IsAbs(got["sh"][0]) {
		t.Errorf("program in PATH: got %q, want an absolute path", got["sh"])
	}
	if _, err := images([]string{"x=sh", "x=sh"}); err == nil {
		t.Error("image bound twice: got no error")
	}
}

// TestImageArgumentsAreRelativeToTheCaller uses images with relative paths.
func TestImageArgumentsAreRelativeToTheCaller(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, mode := range map[string]os.FileMode{"worker.py": 0o600, "run": 0o700} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	got, err := images([]string{"x=./run worker.py --name worker.py result.xml ./run"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "run"), filepath.Join(dir, "worker.py"), "--name", filepath.Join(dir, "worker.py"), "result.xml", filepath.Join(dir, "run")}
	if diff := cmp.Diff(want, got["x"]); diff != "" {
		t.Error(diff)
	}
	if _, err := images([]string{"x=sh ./none.sh"}); err == nil {
		t.Error("missing argument ./none.sh: got no error")
	}
}

func TestSettingsHaveFastHeartbeats(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env               map[string]string
		interval, timeout string
	}{
		"defaults": {nil, "2s", "20s"},
		"interval": {map[string]string{"SORTIE_HEARTBEAT_INTERVAL": "5s"}, "5s", ""},
		"timeout":  {map[string]string{"SORTIE_HEARTBEAT_TIMEOUT": "3s"}, "", "3s"},
	} {
		a := &app{Program: Program{Env: func(name string) (string, bool) { value, ok := row.env[name]; return value, ok }}}
		interval, _ := a.settings("SORTIE_HEARTBEAT_INTERVAL")
		timeout, _ := a.settings("SORTIE_HEARTBEAT_TIMEOUT")
		if interval != row.interval || timeout != row.timeout {
			t.Errorf("%s: got %q and %q, want %q and %q", name, interval, timeout, row.interval, row.timeout)
		}
		if _, err := stack.SettingsFrom(a.settings, nil); err != nil {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
