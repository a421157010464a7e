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
	"sync"
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
	dir, err := top()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var top = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("got no go.mod above this folder")
		}
		dir = parent
	}
	return dir, nil
})

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// sources returns all tracked Go files, except those in testdata and in folders that start
// with a dot. They are parsed once for all tests. Callers must not modify them.
func sources(t *testing.T) []source {
	t.Helper()
	list, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var parsed = sync.OnceValues(func() ([]source, error) {
	dir, err := top()
	if err != nil {
		return nil, err
	}
	names, err := tracked()
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var list []source
	for _, name := range names {
		if !strings.HasSuffix(name, ".go") || strings.Contains("/"+name, "/testdata/") || strings.HasPrefix(name, ".") {
			continue
		}
		file, err := parser.ParseFile(set, filepath.Join(dir, filepath.FromSlash(name)), nil, parser.ParseComments)
		if errors.Is(err, fs.ErrNotExist) { // removed, and not committed yet
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, source{name, file, set})
	}
	return list, nil
})
