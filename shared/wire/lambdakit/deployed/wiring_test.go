package deployed_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// droppable lists the statements of bootstraps that the compiler does not miss, and what does.
// Each is the beginning of a statement.
var droppable = map[string]string{
	"return steps.":                 "TestFunctionsServe: the function has no handler",
	"case ":                         "TestFunctionsServe: the function has no handler",
	"p.Need(\"SORTIE_PUBLIC_URL\")": "TestFunctionsNameMissingVariables: launch requires the address",
	"lambdakit.Count(":              "it only counts for the dashboard; the log has each failure",
	"p.Log.ErrorContext(":           "it only writes a line of the log",
}

// TestNoStatementOfABootstrapIsForgotten drops each statement of each bootstrap. The rest does
// not compile, or the table names what finds the omission: collaborators are arguments.
func TestNoStatementOfABootstrapIsForgotten(t *testing.T) {
	t.Parallel()
	const bootstraps = "../../../../functions/*/bootstrap"
	folders, err := filepath.Glob(bootstraps)
	if err != nil || len(folders) == 0 {
		t.Fatalf("got no bootstraps (%v)", err)
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", exportsOf(t, folders))
	dropped, needed := 0, map[string]bool{}
	for _, folder := range folders {
		path := filepath.Join(folder, "main.go")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := compiles(compiled, text); err != nil {
			t.Fatalf("%s does not compile: %v", path, err)
		}
		for _, s := range statementsOf(t, text) {
			dropped++
			statement := string(text[s.from:s.to])
			mutant := string(text[:s.from]) + string(text[s.to:])
			if compiles(compiled, []byte(mutant)) != nil {
				continue
			}
			prefix := prefixOf(statement, droppable)
			if needed[prefix] = true; prefix == "" {
				t.Errorf("%s compiles without %q: pass what it sets as an argument, or name the test that finds the omission", path, statement)
			}
		}
	}
	for prefix := range droppable {
		if !needed[prefix] {
			t.Errorf("got %q in the table, want only statements that the compiler does not miss", prefix)
		}
	}
	if dropped < 100 {
		t.Errorf("got %d statements, want those of all bootstraps", dropped)
	}
}

// exportsOf returns a lookup of the compiled packages that the folders import.
func exportsOf(t *testing.T, folders []string) importer.Lookup {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, folders...)...)
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(text)) {
		path, export, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path] = export
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
}

// compiles returns the error of the compiler for a program in one file.
func compiles(compiled types.Importer, text []byte) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "main.go", text, 0)
	if err != nil {
		return err
	}
	config := types.Config{Importer: compiled}
	_, err = config.Check("main", files, []*ast.File{file}, nil)
	return err
}

// span is a part of a text.
type span struct{ from, to int }

// statementsOf returns the statements of a file, and those in them.
func statementsOf(t *testing.T, text []byte) (found []span) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "main.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		var list []ast.Stmt
		switch n := n.(type) {
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		}
		for _, s := range list {
			found = append(found, span{files.Position(s.Pos()).Offset, files.Position(s.End()).Offset})
		}
		return true
	})
	return found
}

// prefixOf returns the key of the table with which a text begins; empty without one.
func prefixOf(text string, table map[string]string) string {
	for prefix := range table {
		if strings.HasPrefix(text, prefix) {
			return prefix
		}
	}
	return ""
}
