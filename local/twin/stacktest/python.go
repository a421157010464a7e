package stacktest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Python is the path of a Python 3, the interpreter itself and not what may
// stand before it in the PATH. Without one the test is skipped, or fails where
// CI is set.
func Python(t testing.TB) string {
	t.Helper()
	path, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; print(sys.executable)").Output()
	if err == nil {
		return strings.TrimSpace(string(path))
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("python3 is needed and does not run: %v", err)
	}
	t.Skipf("python3 is needed and does not run: %v; any version from 3.8 on will do", err)
	return ""
}
