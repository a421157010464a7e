package archtest

import (
	"bufio"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// modules reads a go.mod file. It returns the required modules, with true for those marked
// as indirect.
func modules(t *testing.T, name string) (indirect map[string]bool) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	indirect = map[string]bool{}
	lines, inside := bufio.NewScanner(file), false
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 2 && fields[0] == "require":
			inside = true
		case len(fields) == 1 && fields[0] == ")":
			inside = false
		case inside && len(fields) >= 2:
			indirect[fields[0]] = strings.HasSuffix(lines.Text(), "// indirect")
		}
	}
	if err := lines.Err(); err != nil || len(indirect) == 0 {
		t.Fatalf("%s: got %d requirements, %v, want some", name, len(indirect), err)
	}
	return indirect
}

// moduleOf returns the required module that contains a package, or "". Of nested modules it
// returns the one with the longest path.
func moduleOf(imported string, required map[string]bool) string {
	for ; imported != "."; imported = path.Dir(imported) {
		if _, ok := required[imported]; ok {
			return imported
		}
	}
	return ""
}

func TestGoModMarksIndirectDependencies(t *testing.T) {
	t.Parallel()
	const peers = "local/proof/report/peers"
	all := sources(t)
	for _, row := range []struct {
		folder string
		has    func(path string) bool
	}{
		{".", func(path string) bool { return !inside(path, "infra") && !inside(path, peers) }},
		{"infra", func(path string) bool { return inside(path, "infra") }},
		{peers, func(path string) bool { return inside(path, peers) }},
	} {
		t.Run(row.folder, func(t *testing.T) {
			t.Parallel()
			indirect := modules(t, filepath.Join(root(t), row.folder, "go.mod"))
			direct := map[string]bool{}
			for _, s := range all {
				for _, spec := range s.File.Imports {
					if row.has(s.Path) {
						direct[moduleOf(strings.Trim(spec.Path.Value, `"`), indirect)] = true
					}
				}
			}
			for module, marked := range indirect {
				if marked == direct[module] {
					t.Errorf("%s: got marked as indirect %t, want %t", module, marked, !direct[module])
				}
			}
		})
	}
}
