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

// unlinked maps the import path of a program to packages that it must not link. The key ""
// applies to all programs. golang.org/x/tools creates a folder .cache/goimports in the user's
// home. The others are large dependencies of packages that use little of them.
var unlinked = map[string][]string{
	"": {
		"golang.org/x/tools", "github.com/superfly/fly-go", "github.com/Khan/genqlient", "github.com/vektah/gqlparser/v2",
		"github.com/google/gnostic-models", "k8s.io/client-go/kubernetes", "k8s.io/client-go/testing", "k8s.io/kube-openapi/pkg/validation",
		"github.com/DataDog/datadog-go/v5", "github.com/go-ldap/ldap/v3", "github.com/hashicorp/vault-client-go", "github.com/rabbitmq/amqp091-go", "github.com/segmentio/kafka-go",
	},
	"github.com/sortie-dev/sortie/local/sortie": {"github.com/aws/aws-sdk-go-v2/service/ssm"},
}

// TestProgramsLinkWhatTheyNeed checks that no program of the repository links a package of
// unlinked.
func TestProgramsLinkWhatTheyNeed(t *testing.T) {
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
		none := slices.Concat(unlinked[""], unlinked[p.ImportPath])
		for _, dep := range p.Deps {
			if slices.ContainsFunc(none, func(no string) bool { return inside(dep, no) }) {
				t.Errorf("%s links %s, want it only in tests", p.ImportPath, dep)
			}
		}
	}
	if programs < 10 {
		t.Errorf("got %d programs, want those of functions, local and shared", programs)
	}
}
