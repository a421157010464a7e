package stacktest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Python returns the path of the Python 3 interpreter itself, not of a wrapper in PATH. If
// there is no Python, it skips the test, or fails it if CI is set.
func Python(t testing.TB) string {
	t.Helper()
	path, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; print(sys.executable)").Output()
	if err == nil {
		return strings.TrimSpace(string(path))
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("python3 does not run: %v", err)
	}
	t.Skipf("python3 does not run: %v; install version 3.8 or newer", err)
	return ""
}
