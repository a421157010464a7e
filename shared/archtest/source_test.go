package archtest

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sortie-dev/sortie"

// source is one Go file of the repository.
type source struct {
	// Path is relative to the repository, with slashes.
	Path string
	File *ast.File
	Set  *token.FileSet
}

// Folder returns the folder of the file, relative to the repository.
func (s source) Folder() string { return path.Dir(s.Path) }

// Test reports whether the file is a test file.
func (s source) Test() bool { return strings.HasSuffix(s.Path, "_test.go") }

// Imports returns the import paths. Paths of this repository are relative to its root.
func (s source) Imports() []string {
	var list []string
	for _, spec := range s.File.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			list = append(list, strings.TrimPrefix(name, module+"/"))
		}
	}
	return list
}

// Line returns the position of a node as "path:line", for messages.
func (s source) Line(node ast.Node) string {
	return s.Path + ":" + strconv.Itoa(s.Set.Position(node.Pos()).Line)
}

// root returns the root folder of the repository: the closest parent with a go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("there is no go.mod above this folder")
		}
		dir = parent
	}
	return dir
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// sources parses all tracked Go files, except those in testdata and in folders that start
// with a dot.
func sources(t *testing.T) []source {
	t.Helper()
	top := root(t)
	set := token.NewFileSet()
	var list []source
	for _, name := range trackedFiles(t) {
		if !strings.HasSuffix(name, ".go") || strings.Contains("/"+name, "/testdata/") || strings.HasPrefix(name, ".") {
			continue
		}
		file, err := parser.ParseFile(set, filepath.Join(top, filepath.FromSlash(name)), nil, parser.ParseComments)
		if errors.Is(err, fs.ErrNotExist) { // removed, and not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, source{name, file, set})
	}
	return list
}
