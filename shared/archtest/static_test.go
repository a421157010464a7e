package archtest

import (
	"regexp"
	"strings"
	"testing"
)

// builds matches a command that builds a program.
var builds = regexp.MustCompile(`"build", "-|\bgo build -`)

// TestProgramsAreStatic checks that each file that builds a program sets CGO_ENABLED=0. The
// loader of a dynamic program reads variables such as LD_PRELOAD before the program starts.
func TestProgramsAreStatic(t *testing.T) {
	t.Parallel()
	for name, text := range trackedText(t, ".go", "Dockerfile", ".md", ".sh") {
		if builds.MatchString(text) && !strings.Contains(text, "CGO_ENABLED") && name != "shared/archtest/static_test.go" {
			t.Errorf("%s: got a build that may be dynamic, want CGO_ENABLED=0", name)
		}
	}
	if text := trackedText(t, "Makefile")["Makefile"]; !strings.Contains(text, "export CGO_ENABLED := 0\n") {
		t.Error("Makefile: got programs that may be dynamic, want CGO_ENABLED := 0 exported")
	}
}
