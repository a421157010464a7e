package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// unlinked are packages that no program links. Those of developer tools read source code,
// and golang.org/x/tools makes a folder .cache/goimports in the home of every user.
var unlinked = []string{"golang.org/x/tools", "github.com/superfly/fly-go", "github.com/Khan/genqlient", "github.com/vektah/gqlparser/v2"}

// TestProgramsLinkNoDeveloperTools lists what every program of the repository links.
func TestProgramsLinkNoDeveloperTools(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Deps", "./...")
	list.Dir = root(t)
	text, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	programs := 0
	for packages := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p struct {
			ImportPath, Name string
			Deps             []string
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Name != "main" {
			continue
		}
		programs++
		for _, dep := range p.Deps {
			if slices.ContainsFunc(unlinked, func(no string) bool { return inside(dep, no) }) {
				t.Errorf("%s links %s, want no developer tools", p.ImportPath, dep)
			}
		}
	}
	if programs < 10 {
		t.Errorf("got %d programs, want those of functions, local and shared", programs)
	}
}
