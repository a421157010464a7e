package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestStatesAreWrittenInOnePlace checks RL-0.16: in shared/domain/run only New, NewSkipped and enter
// assign the state of a run. enter checks the table of transitions.
func TestStatesAreWrittenInOnePlace(t *testing.T) {
	t.Parallel()
	var got []string
	for _, s := range sources(t) {
		if s.Test() || s.Folder() != "shared/domain/run" {
			continue
		}
		for _, declaration := range s.File.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(function, func(node ast.Node) bool {
				assignment, ok := node.(*ast.AssignStmt)
				if !ok {
					return true
				}
				for _, target := range assignment.Lhs {
					field, ok := target.(*ast.SelectorExpr)
					if !ok || field.Sel.Name != "State" {
						continue
					}
					if slot, ok := field.X.(*ast.SelectorExpr); ok && strings.HasSuffix(slot.Sel.Name, "Slot") {
						continue
					}
					if owner, ok := field.X.(*ast.Ident); !ok || owner.Name != "e" { // e is an event with a copy of the run's state
						got = append(got, function.Name.Name)
					}
				}
				return true
			})
		}
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, []string{"New", "NewSkipped", "enter"}) {
		t.Errorf("got functions %v that assign a state, want New, NewSkipped and enter", got)
	}
}
