package archtest

import (
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ruleCount is the number of rules in shared/README.md.
const ruleCount = 15

// cites matches the number of a rule in the name or the comment of a test.
var cites = regexp.MustCompile(`^TestRule([0-9]+)[A-Z]|\b[Rr]ule ([0-9]+)\b`)

// TestEveryRuleHasTests checks that at least one test cites each rule, and that no test cites
// a rule that does not exist.
func TestEveryRuleHasTests(t *testing.T) {
	t.Parallel()
	tests := ruleTests(t)
	for rule := 1; rule <= ruleCount; rule++ {
		if len(tests[rule]) == 0 {
			t.Errorf("rule %d: got no test, want a test whose comment cites it", rule)
		}
	}
	for rule, names := range tests {
		if rule < 1 || rule > ruleCount {
			t.Errorf("%v: got rule %d, want 1 to %d", names, rule, ruleCount)
		}
	}
}

// ruleTests maps each rule to the tests that cite it, as "folder.Test", sorted.
func ruleTests(t *testing.T) map[int][]string {
	t.Helper()
	tests := map[int][]string{}
	for _, s := range sources(t) {
		if !s.Test() {
			continue
		}
		for _, declaration := range s.File.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			for _, text := range []string{f.Name.Name, f.Doc.Text()} {
				for _, found := range cites.FindAllStringSubmatch(text, -1) {
					rule, err := strconv.Atoi(found[1] + found[2])
					if err != nil {
						t.Fatal(err)
					}
					if name := s.Folder() + "." + f.Name.Name; !slices.Contains(tests[rule], name) {
						tests[rule] = append(tests[rule], name)
					}
				}
			}
		}
	}
	for _, names := range tests {
		slices.Sort(names)
	}
	return tests
}
