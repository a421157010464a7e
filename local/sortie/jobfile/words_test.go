package jobfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		got, err := SplitWords(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("SplitWords(%q): %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{`'a`, `"a`, `a\`, `"a\"`} {
		if got, err := SplitWords(text); err == nil {
			t.Errorf("SplitWords(%q): got %q, want an error", text, got)
		}
	}
}

func FuzzSplitWords(f *testing.F) {
	for _, seed := range []string{"", "a b", `'a b'`, `"a\"b"`, `a\ b`, "\x00", "é 'ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, err := SplitWords(text)
		if err != nil {
			return
		}
		// Quoted words split into the same words.
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		again, err := SplitWords(strings.Join(quoted, " "))
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
	got, err := Images([]string{"registry/x:latest='" + program + "' --flag a=b", "sh=sh"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{program, "--flag", "a=b"}, got["registry/x:latest"]); diff != "" {
		t.Error(diff)
	}
	if !filepath.IsAbs(got["sh"][0]) {
		t.Errorf("program in PATH: got %q, want an absolute path", got["sh"])
	}
	if _, err := Images([]string{"x=sh", "x=sh"}); err == nil {
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
	got, err := Images([]string{"x=./run worker.py --name worker.py result.xml ./run"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "run"), filepath.Join(dir, "worker.py"), "--name", filepath.Join(dir, "worker.py"), "result.xml", filepath.Join(dir, "run")}
	if diff := cmp.Diff(want, got["x"]); diff != "" {
		t.Error(diff)
	}
	if _, err := Images([]string{"x=sh ./none.sh"}); err == nil {
		t.Error("missing argument ./none.sh: got no error")
	}
}
