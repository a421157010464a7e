//go:build unix

package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/sortie/conformance"
)

const sdk = "github.com/sortie-dev/sortie/shared/sdk/go"

// goTool runs the go command and returns its output.
func goTool(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return strings.TrimSpace(string(text))
}

// TestExamplesConform checks the guide's example worker in each language.
func TestExamplesConform(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	goTool(t, "build", "-o", dir, sdk+"/sortie-exec", sdk+"/worker/examples/go")
	examples := filepath.Join(goTool(t, "list", "-f", "{{.Dir}}", sdk+"/worker"), "examples")
	python := stacktest.Python(t)
	for name, command := range map[string]func(scenario string) []string{
		"go": func(string) []string { return []string{filepath.Join(dir, "go")} },
		"shell": func(scenario string) []string {
			return []string{
				filepath.Join(dir, "sortie-exec"), "--output", filepath.Join(dir, scenario+".xml"), "--content-type", "application/xml",
				"sh", filepath.Join(examples, "shell", "steps.sh"),
			}
		},
		"python": func(string) []string { return []string{python, filepath.Join(examples, "python", "worker.py")} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var checks sync.WaitGroup
			defer checks.Wait()
			for _, scenario := range conformance.Scenarios() {
				checks.Go(func() {
					report := check(t, nil, []string{scenario}, command(scenario), conforms)
					for _, v := range report.Failures() {
						t.Errorf("%s: %s %s: %s", scenario, v.Mark, v.Name, v.Detail)
					}
					uploads := func(v conformance.Verdict) bool { return v.Name == "note-upload" && v.Detail == "yes" }
					if scenario == "work" && !slices.ContainsFunc(report.Verdicts, uploads) {
						t.Error("got no upload, want the output at the URL of the envelope")
					}
				})
			}
		})
	}
}

// The callback is the only call of the example.
func TestCallbackExampleConforms(t *testing.T) {
	t.Parallel()
	examples := filepath.Join(goTool(t, "list", "-f", "{{.Dir}}", sdk+"/worker"), "examples")
	report := check(t, nil, nil, []string{"sh", filepath.Join(examples, "shell", "callback.sh")}, conforms)
	if !report.Conforms || report.Contract != "export" {
		t.Errorf("got contract %s, failures %+v, want a worker that conforms to export", report.Contract, report.Failures())
	}
}
