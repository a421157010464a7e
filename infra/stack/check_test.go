package stack_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/infra/stack"
	"github.com/sortie-dev/sortie/local/proof/bootstraps"
	"github.com/sortie-dev/sortie/local/sortie/template"
)

// TestFunctionsReadTheirEnvironment runs each built function with -check and the template's
// environment. The function must need no other variable and must read each one.
func TestFunctionsReadTheirEnvironment(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]template.Template{
		"the defaults": deployed(t), "everything": everything(t), "buffered": synth(t, map[string]any{"stream": false}),
		"without exports": synthOnly(t, nil), "with Kubernetes alone": synthOnly(t, map[string]any{"kubernetesCluster": "east"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, function := range functionsOf(made) {
				t.Run(function, func(t *testing.T) {
					t.Parallel()
					found := functionOf(t, made, function)
					if diff := cmp.Diff(sortedKeys(found.Variables()), reads(t, function, found)); diff != "" {
						t.Errorf("variables of the template (-) and those that the function reads (+):\n%s", diff)
					}
				})
			}
		})
	}
}

// built builds the programs of all functions, of which the tests of functions have a copy.
var built = sync.OnceValues(func() (string, error) {
	return bootstraps.Build(context.Background(), stack.Programs()...)
})

// reads returns the variables that a function reads.
func reads(t *testing.T, name string, function *template.Resource) []string {
	t.Helper()
	folder, err := built()
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), filepath.Join(folder, stack.Program(name), "bootstrap"), "-check")
	check.Env = function.Environment()
	output, err := check.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%s refuses the template's environment:\n%s", name, failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(output))
	slices.Sort(names)
	return names
}
