package contract_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

var rewrite = flag.Bool("rewrite", false, "write the enums of openapi.yaml")

// enum matches a line with an enum and the name of the function that declares its values.
var enum = regexp.MustCompile(`(?m)enum: \[[^\]]*\](.*) # (\w+\.\w+)$`)

// TestEnumsAreFresh compares the enums of openapi.yaml with the lists that declare their values.
// With -rewrite it writes them.
func TestEnumsAreFresh(t *testing.T) {
	t.Parallel()
	declared := map[string]any{
		"limit.Formats": limit.Formats(), "platform.EngineKinds": platform.EngineKinds(), "platform.Runners": platform.Runners(),
		"spec.ConstraintNames": spec.ConstraintNames(), "spec.ActionTypes": spec.ActionTypes(),
	}
	document, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	fresh := enum.ReplaceAllStringFunc(string(document), func(line string) string {
		parts := enum.FindStringSubmatch(line)
		values, ok := declared[parts[2]]
		if !ok {
			t.Errorf("got an enum of the unknown list %s", parts[2])
			return line
		}
		seen[parts[2]] = true
		var names []string
		for i, list := 0, reflect.ValueOf(values); i < list.Len(); i++ {
			names = append(names, list.Index(i).String())
		}
		return fmt.Sprintf("enum: [%s]%s # %s", strings.Join(names, ", "), parts[1], parts[2])
	})
	for name := range declared {
		if !seen[name] {
			t.Errorf("got no enum of %s, want one", name)
		}
	}
	switch {
	case fresh == string(document):
	case !*rewrite:
		t.Error("the enums of openapi.yaml are old; write them with: make generate")
	default:
		if err := os.WriteFile("openapi.yaml", []byte(fresh), 0o644); err != nil { //nolint:gosec // a public document
			t.Fatal(err)
		}
	}
}
