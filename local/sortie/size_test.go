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
const maxSize = 75_000_000

// byName are the only functions that may call a method by its name. The pages of the console are
// templates of html/template, which uses text/template. Because of it the linker keeps the
// exported methods of all types, which makes the program a third larger. Among them are those of
// reflect.Value.
var byName = []string{
	"text/template.(*state).evalField",
	"reflect.Value.Methods.func1", "reflect.(*Value).Methods.Value.Methods.func1",
}

// TestProgramIsSmall builds the program like "make build".
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
		if caller, _, ok := strings.Cut(edge, " <ReflectMethod> -> "); ok && !slices.Contains(callers, caller) && !slices.Contains(byName, caller) {
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
