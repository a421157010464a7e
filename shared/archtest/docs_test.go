package archtest

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if !s.Test() {
			documented[s.Folder()] = documented[s.Folder()] || s.File.Doc.Text() != ""
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(documented)) {
		if !documented[folder] {
			t.Errorf("%s has no package comment", folder)
		}
	}
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.Test() || s.File.Name.Name == "main" {
			continue
		}
		for _, declaration := range s.File.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc.Text() == "" && !promised(d) && exportedReceiver(d) {
					t.Errorf("%s: %s is not documented", s.Line(d), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if name, ok := spec.(*ast.TypeSpec); ok && name.Name.IsExported() && d.Doc.Text() == "" && name.Doc.Text() == "" {
						t.Errorf("%s: %s is not documented", s.Line(name), name.Name.Name)
					}
				}
			}
		}
	}
}

// promised reports whether f is a method of a well-known interface, which needs no comment.
func promised(f *ast.FuncDecl) bool {
	return f.Recv != nil && slices.Contains([]string{"Error", "Unwrap", "String", "Read", "Write", "Close", "Len", "Less", "Swap", "Push", "Pop", "ServeHTTP", "MarshalJSON", "UnmarshalJSON"}, f.Name.Name)
}

func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported()
}

// TestTimeAndEnvironmentAreArguments checks that only main.go files read the host's clock and
// environment. host.go reads them for all bootstraps. Clocks, test helpers and measurements are
// exempt.
func TestTimeAndEnvironmentAreArguments(t *testing.T) {
	t.Parallel()
	asks := []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "os.Getenv", "os.LookupEnv", "os.Environ", "log.Fatal", "log.Fatalf", "slog.Default"}
	for _, s := range sources(t) {
		if s.Test() || path.Base(s.Path) == "main.go" || s.Path == "shared/wire/lambdakit/process/host.go" || inside(s.Folder(), "shared/base/clock") || inside(s.Folder(), "local/proof/port") || inside(s.Folder(), "local/proof/bench") || inside(s.Folder(), "local/proof/report") || inside(s.Folder(), "local/proof/stacktest") {
			continue
		}
		ast.Inspect(s.File, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && slices.Contains(asks, pkg.Name+"."+selector.Sel.Name) {
				t.Errorf("%s: %s.%s: time and environment come in from main", s.Line(selector), pkg.Name, selector.Sel.Name)
			}
			return true
		})
	}
}

// TestNothingIsLeftToDo checks that no comment marks open work. Open work is tracked outside
// of the code.
func TestNothingIsLeftToDo(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, group := range s.File.Comments {
			for _, mark := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"} {
				if strings.Contains(group.Text(), mark) {
					t.Errorf("%s: %s does not land", s.Line(group), mark)
				}
			}
		}
	}
}

// TestTopLevelNames checks the names of tracked files and folders at the top level. Ignored
// files, such as build outputs, are not checked. documents.go embeds README.md, which only a
// package of its folder can do.
func TestTopLevelNames(t *testing.T) {
	t.Parallel()
	allowed := []string{"functions", "infra", "shared", "statemachines", "events", "local", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE", "CHANGELOG.md", "documents.go"}
	for _, file := range trackedFiles(t) {
		name, _, _ := strings.Cut(file, "/")
		if !strings.HasPrefix(name, ".") && !slices.Contains(allowed, name) {
			t.Errorf("%s: unknown name at the top level, want one of %v", name, allowed)
		}
	}
}
