package sqlite_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestLimitsDoNotPrepareAgain checks that no query has a bound value as its limit, for
// which SQLite prepares it again at each execution. That takes more time than the query.
func TestLimitsDoNotPrepareAgain(t *testing.T) {
	t.Parallel()
	bound := regexp.MustCompile(`LIMIT\s+[?:@$][0-9A-Za-z]*`)
	// SQLite also prepares a comparison with 0 or 1 again; the first stream has the number 1.
	numbered := regexp.MustCompile(`feed_(records|marks) WHERE stream = \?`)
	// It also prepares a query for the pool of a place again, because two indexes have the
	// column.
	placed := regexp.MustCompile(`pool = \?\d* AND place IS`)
	files := 0
	for _, pattern := range []string{"*.go", filepath.Join("..", "..", "..", "local", "twin", "engine", "*.go")} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files++
			if ok, _ := filepath.Match("*_test.go", filepath.Base(name)); ok || filepath.Base(name) == "doc.go" {
				continue
			}
			for _, found := range bound.FindAllString(string(text), -1) {
				t.Errorf("%s: got %q, want \"LIMIT 0 + ?\"", name, found)
			}
			for _, found := range numbered.FindAllString(string(text), -1) {
				t.Errorf("%s: got %q, want \"stream = 0 + ?\"", name, found)
			}
			for _, found := range placed.FindAllString(string(text), -1) {
				t.Errorf("%s: got %q, want \"pool = ?2 || ''\"", name, found)
			}
		}
	}
	if files < 20 {
		t.Errorf("got %d files, want those of this package and of the engine", files)
	}
}
