package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxSize limits the size of the program, in bytes.
const maxSize = 61_000_000

// TestProgramIsSmall builds the program like "make build". No function may call a method by its
// name, as the templates of the standard library do: the linker would then keep the exported
// methods of all types, which makes the program a third larger.
func TestProgramIsSmall(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "sortie")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w -dumpdep", "-o", name, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	edges, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, edges)
	}
	var callers []string
	for edge := range strings.Lines(string(edges)) {
		if caller, _, ok := strings.Cut(edge, " <ReflectMethod> -> "); ok && !slices.Contains(callers, caller) {
			callers = append(callers, caller)
		}
	}
	if len(callers) > 0 {
		t.Errorf("got calls of methods by their names in %s, want none", strings.Join(callers, ", "))
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxSize {
		t.Errorf("got %d bytes, want at most %d", info.Size(), maxSize)
	}
}
