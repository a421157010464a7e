package components

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pip installs the lock file without resolving dependencies, from any configured index.
func TestRequirementsArePinned(t *testing.T) {
	t.Parallel()
	text := read(t, Python)
	pinned := regexp.MustCompile(`^[A-Za-z0-9._-]+(\[[a-z,]+\])?==[0-9A-Za-z.]+$`)
	names := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !pinned.MatchString(line) {
			t.Errorf("%q pins no version", line)
		}
		name, _, _ := strings.Cut(line, "==")
		if names[name] {
			t.Errorf("%s is there twice", name)
		}
		names[name] = true
	}
	if !strings.Contains(text, "localstack-core==") && !strings.Contains(text, "localstack-core[runtime]==") {
		t.Error("LocalStack itself is not in the lock")
	}
	if !strings.Contains(text, "=="+Version+"\n") {
		t.Errorf("nothing in the lock has LocalStack's version %s", Version)
	}
}

func TestNoHostNames(t *testing.T) {
	t.Parallel()
	for _, part := range []Part{Python, DynamoDB} {
		text := strings.ReplaceAll(read(t, part), "http://maven.apache.org/POM/4.0.0", "")
		if strings.Contains(text, "://") {
			t.Errorf("%s names a host", part)
		}
	}
}

// LocalStack reports no error for a missing module.
func TestEntryPointsExist(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Plugin.Write(dir); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "plugin")
	points, err := filepath.Glob(filepath.Join(folder, "*.dist-info", "entry_points.txt"))
	if err != nil || len(points) != 1 {
		t.Fatalf("entry points: %v, %v", points, err)
	}
	text, err := os.ReadFile(points[0])
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\S+ = ([a-z_.]+):(\w+)$`).FindAllStringSubmatch(string(text), -1)
	if len(found) != 6 {
		t.Errorf("got %d entry points, want those of six modules", len(found))
	}
	for _, each := range found {
		module, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(strings.ReplaceAll(each[1], ".", "/"))+".py"))
		if err != nil {
			t.Error(err)
		} else if !regexp.MustCompile(`(?m)^(def|class) ` + each[2] + `\b`).Match(module) {
			t.Errorf("%s has no %s", each[1], each[2])
		}
	}
}

func TestDigests(t *testing.T) {
	t.Parallel()
	seen := map[string]Part{}
	for _, part := range []Part{Python, DynamoDB, Plugin} {
		digest, err := part.Digest()
		if err != nil || len(digest) != 16 {
			t.Errorf("%s: digest %q, %v", part, digest, err)
		}
		if other, twice := seen[digest]; twice {
			t.Errorf("%s and %s have the same digest", part, other)
		}
		seen[digest] = part
	}
}

func read(t *testing.T, part Part) string {
	t.Helper()
	dir := t.TempDir()
	if err := part.Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, string(part)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
