package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// requirement is a row of a table in shared/wire/contract, or a heading with an id. A heading
// has no text and no tests.
type requirement struct {
	ID, Line, Text, Tests string
}

var (
	requirementID   = regexp.MustCompile(`\b(?:EC|WC|EE|DP|RL)-\d+(?:\.\d+)*`)
	requirementHead = regexp.MustCompile(`^##+ ((?:EC|WC|EE|DP|RL)-\d+(?:\.\d+)*) `)
	requirementRow  = regexp.MustCompile(`^\| ((?:EC|WC|EE|DP|RL)-\d+(?:\.\d+)*) \|(.*)\|(.*)\|$`)
	testFunction    = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark|Example)\w*$`)
	backticked      = regexp.MustCompile("`([^`]+)`")
)

// trackedFiles returns the paths of all files that git tracks, relative to the root. Callers
// must not modify the list.
func trackedFiles(t *testing.T) []string {
	t.Helper()
	files, err := tracked()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var tracked = sync.OnceValues(func() ([]string, error) {
	dir, err := top()
	if err != nil {
		return nil, err
	}
	command := exec.Command("git", "ls-files", "-z")
	command.Dir = dir
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
})

// trackedText returns the contents of the tracked files with one of the endings, by path.
func trackedText(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range trackedFiles(t) {
		if !slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(name, ending) }) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) { // removed, and not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return files
}

// requirements returns the requirements of each file in shared/wire/contract, in file order.
func requirements(t *testing.T) map[string][]requirement {
	t.Helper()
	tables := map[string][]requirement{}
	for name, text := range trackedText(t, ".md") {
		if path.Dir(name) != "shared/wire/contract" {
			continue
		}
		number := 0
		for line := range strings.Lines(text) {
			number++
			line = strings.TrimRight(line, "\n")
			at := fmt.Sprintf("%s:%d", name, number)
			if head := requirementHead.FindStringSubmatch(line); head != nil {
				tables[name] = append(tables[name], requirement{ID: head[1], Line: at})
			} else if row := requirementRow.FindStringSubmatch(line); row != nil {
				tables[name] = append(tables[name], requirement{row[1], at, strings.TrimSpace(row[2]), strings.TrimSpace(row[3])})
			} else if strings.HasPrefix(line, "| ") && requirementID.MatchString(strings.SplitN(line, "|", 3)[1]) {
				t.Errorf("%s: got a row that is not `| id | requirement | test |`", at)
			}
		}
	}
	if len(tables) == 0 {
		t.Fatal("got no tables of requirements in shared/wire/contract/*.md")
	}
	return tables
}

func TestRequirementIDsAreUniqueAndOrdered(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, list := range requirements(t) {
		previous, section := requirement{}, ""
		for _, r := range list {
			if first, ok := seen[r.ID]; ok {
				t.Errorf("%s: %s is already at %s", r.Line, r.ID, first)
			}
			seen[r.ID] = r.Line
			if previous.ID != "" && compareIDs(t, previous.ID, r.ID) >= 0 {
				t.Errorf("%s: %s follows %s", r.Line, r.ID, previous.ID)
			}
			previous = r
			if r.Tests == "" {
				section = r.ID
			} else if r.ID[:strings.LastIndex(r.ID, ".")] != section {
				t.Errorf("%s: got %s in section %s", r.Line, r.ID, section)
			}
		}
	}
}

func compareIDs(t *testing.T, a, b string) int {
	t.Helper()
	parts := func(id string) (list []int) {
		prefix, numbers, _ := strings.Cut(id, "-")
		list = append(list, slices.Index([]string{"EC", "WC", "EE", "DP", "RL"}, prefix))
		for text := range strings.SplitSeq(numbers, ".") {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, n)
		}
		return list
	}
	return slices.Compare(parts(a), parts(b))
}

// TestRequirementsNameExistingTests checks that the tests, scenarios and files in the third
// column exist.
func TestRequirementsNameExistingTests(t *testing.T) {
	t.Parallel()
	functions, words := testNames(t)
	files := trackedFiles(t)
	for _, list := range requirements(t) {
		for _, r := range list {
			if slices.Contains([]string{"", "not yet", "no test", "informative"}, r.Tests) {
				continue
			}
			names := backticked.FindAllStringSubmatch(r.Tests, -1)
			if strings.Trim(backticked.ReplaceAllString(r.Tests, ""), " ,") != "" || len(names) == 0 {
				t.Errorf("%s: %s: got %q, want tests in backticks, or one of: not yet, no test, informative", r.Line, r.ID, r.Tests)
			}
			for _, match := range names {
				folder, name, isTest := strings.Cut(match[1], ": ")
				if !isTest {
					if !slices.Contains(files, match[1]) {
						t.Errorf("%s: %s: no file %s", r.Line, r.ID, match[1])
					}
					continue
				}
				folders := words[name]
				if testFunction.MatchString(name) {
					folders = functions[name]
				}
				if !slices.Contains(folders, folder) {
					t.Errorf("%s: %s: no %q in %s; folders that have it: %q", r.Line, r.ID, name, folder, folders)
				}
			}
		}
	}
}

// TestDocumentsNameExistingTests checks that the tests that other documents cite exist, such
// as `shared/domain/run: TestStories`.
func TestDocumentsNameExistingTests(t *testing.T) {
	t.Parallel()
	functions, _ := testNames(t)
	found := 0
	for name, text := range trackedText(t, ".md") {
		for _, match := range backticked.FindAllStringSubmatch(text, -1) {
			folder, test, isTest := strings.Cut(match[1], ": ")
			if !isTest || !testFunction.MatchString(test) || path.Dir(name) == "shared/wire/contract" {
				continue
			}
			found++
			if !slices.Contains(functions[test], folder) {
				t.Errorf("%s: no %q in %s; folders that have it: %q", name, test, folder, functions[test])
			}
		}
	}
	if found == 0 {
		t.Error("got no documents with tests, want those of the runners")
	}
}

// names has the folders of each function in a test file, and the folders of each string
// literal in a Go file. Scenarios are named by string literals.
type names struct{ functions, words map[string][]string }

// testNames returns the names of the repository. Callers must not modify them.
func testNames(t *testing.T) (functions, words map[string][]string) {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return all.functions, all.words
}

var listed = sync.OnceValues(func() (names, error) {
	all := names{map[string][]string{}, map[string][]string{}}
	add := func(to map[string][]string, name, folder string) {
		if !slices.Contains(to[name], folder) {
			to[name] = append(to[name], folder)
		}
	}
	files, err := parsed()
	for _, s := range files {
		ast.Inspect(s.File, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				if s.Test() && n.Recv == nil {
					add(all.functions, n.Name.Name, s.Folder())
				}
			case *ast.BasicLit:
				if value, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					add(all.words, value, s.Folder())
				}
			}
			return true
		})
	}
	return all, err
})

// cited are the endings of the files whose citations of requirements are checked.
var cited = []string{".go", ".md", ".yaml", ".yml", ".py", ".sh", "Makefile"}

func TestCitedRequirementsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, list := range requirements(t) {
		for _, r := range list {
			known[r.ID] = true
		}
	}
	for name, text := range trackedText(t, cited...) {
		number := 0
		for line := range strings.Lines(text) {
			number++
			for _, id := range requirementID.FindAllString(line, -1) {
				if !known[id] {
					t.Errorf("%s:%d: %s is not in shared/wire/contract", name, number, id)
				}
			}
		}
	}
}

// TestSectionSignsCiteRFCs checks that a section sign follows "RFC " on its line. Contracts
// are cited by the ids of shared/wire/contract, not by section.
func TestSectionSignsCiteRFCs(t *testing.T) {
	t.Parallel()
	const sign = "\u00a7"
	for name, text := range trackedText(t, cited...) {
		number := 0
		for line := range strings.Lines(text) {
			number++
			before, _, found := strings.Cut(line, sign)
			if found && !strings.Contains(before, "RFC ") {
				t.Errorf("%s:%d: got a section sign without an RFC, want an id of shared/wire/contract: %s", name, number, strings.TrimSpace(line))
			}
		}
	}
}
