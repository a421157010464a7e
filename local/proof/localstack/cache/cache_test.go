package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/localstack/prerequisites"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// setup returns an empty cache. Its npm writes a line to the file calls and then runs the
// script.
func setup(t *testing.T, script string) (c Cache, calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	npm := filepath.Join(dir, "npm")
	// A fork while the file is open for writing would make the file busy.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(npm, []byte("#!/bin/sh\necho called >>"+calls+"\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return Cache{
		Dir: filepath.Join(dir, "cache"), Tools: prerequisites.Tools{NPM: npm}, Environ: []string{"PATH=/usr/bin:/bin"},
		Clock: clock.System{}, Say: func(string, ...any) {},
	}, calls
}

const installs = "mkdir -p node_modules/.bin && touch node_modules/.bin/cdklocal"

func TestConcurrentInstallation(t *testing.T) {
	t.Parallel()
	c, calls := setup(t, "sleep 0.3; "+installs)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			dir, err := c.CDK(t.Context(), wanted(t))
			if err != nil {
				t.Error(err)
			} else if _, err := os.Stat(filepath.Join(dir, "cdklocal")); err != nil {
				t.Errorf("the part is not whole: %v", err)
			}
		})
	}
	all.Wait()
	if got := count(t, calls); got != 1 {
		t.Errorf("it was installed %d times", got)
	}
}

func TestFailedInstallationIsRepeated(t *testing.T) {
	t.Parallel()
	c, calls := setup(t, `if [ ! -e ../again ]; then touch ../again half; echo 'network is unreachable'; exit 1; fi; [ ! -e half ] && `+installs)
	_, err := c.CDK(t.Context(), wanted(t))
	if err == nil || !strings.Contains(err.Error(), "network is unreachable") || !strings.Contains(err.Error(), "npm") {
		t.Errorf("error %v", err)
	}
	if _, err := c.CDK(t.Context(), wanted(t)); err != nil {
		t.Errorf("the second try: %v", err)
	}
	if got := count(t, calls); got != 2 {
		t.Errorf("it was tried %d times", got)
	}
}

func TestPluginFolder(t *testing.T) {
	t.Parallel()
	c, _ := setup(t, "")
	dir, err := c.Plugin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"sortie_localstack/__init__.py", "sortie_localstack/executor.py", "sortie_localstack-1.0.dist-info/entry_points.txt"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}

// wanted returns the path of a package.json.
func wanted(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "package.json")
	if err := os.WriteFile(file, []byte(`{"name": "test"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func count(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(fmt.Errorf("npm was never called: %w", err))
	}
	return strings.Count(string(text), "\n")
}
