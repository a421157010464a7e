package command

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
		got, err := splitWords(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("splitWords(%q): %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{`'a`, `"a`, `a\`, `"a\"`} {
		if got, err := splitWords(text); err == nil {
			t.Errorf("splitWords(%q) is %q", text, got)
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
		// What was split can be quoted and is split into the same again.
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		again, err := splitWords(strings.Join(quoted, " "))
		if err != nil || !cmp.Equal(words, again) {
			t.Errorf("%q is %q, and quoted %q, error %v", text, words, again, err)
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
		t.Errorf("a program of the PATH is %q", got["sh"])
	}
	if _, err := images([]string{"x=sh", "x=sh"}); err == nil {
		t.Error("an image was bound twice")
	}
}
