package worker_test

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestImageHasOneStaticProgram runs the build command of the Dockerfile for this host's
// processor, and then the program that it built.
func TestImageHasOneStaticProgram(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`go build (-trimpath .*) -ldflags "([^"]*)" -o /image/worker (\S+)`).FindSubmatch(text)
	if found == nil {
		t.Fatal("got another build command in the Dockerfile, want that of this test")
	}
	program := filepath.Join(t.TempDir(), "worker")
	args := append([]string{"build"}, strings.Fields(string(found[1]))...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "-ldflags", string(found[2]), "-o", program, string(found[3]))...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 || file.Section(".interp") != nil {
		t.Errorf("got libraries %v, %v, want a static program", libraries, err)
	}
	if runtime.GOOS != "linux" {
		return // the rest needs a host that runs it
	}
	cmd = exec.CommandContext(t.Context(), program)
	cmd.Env = []string{"TASK_ID=t1"}
	output, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(string(output), "SOURCE_API_URL") {
		t.Errorf("got %v, %s, want exit code 1 and an error about SOURCE_API_URL", err, output)
	}
}
