package archtest

import (
	"slices"
	"strings"
	"testing"
)

// securityDocument is the path of the document with the security guarantees. Each row of its
// tables names the tests that check it.
const securityDocument = ".github/SECURITY.md"

// untested is the prefix of the last cell of a row without tests. The reason follows.
const untested = "not tested: "

// TestSecurityStatementsHaveTests checks that each row of the tables in SECURITY.md names
// existing tests or a reason. Statements outside of the tables are refused, because they name
// no tests.
func TestSecurityStatementsHaveTests(t *testing.T) {
	t.Parallel()
	functions, words := testNames(t)
	rows, section := 0, ""
	for i, line := range strings.Split(trackedText(t, ".md")[securityDocument], "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			section = strings.TrimLeft(line, "# ")
			continue
		case line == "" || strings.HasPrefix(line, "|---") || strings.HasSuffix(line, "| held by |"):
			continue
		case !strings.HasPrefix(line, "|"):
			if section != "Report a vulnerability" && section != "How to read this" {
				t.Errorf("%s:%d: got a statement outside of a table: %s", securityDocument, i+1, line)
			}
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		held := strings.TrimSpace(cells[len(cells)-1])
		if strings.HasPrefix(held, untested) && len(held) > len(untested) {
			continue
		}
		names := backticked.FindAllStringSubmatch(held, -1)
		if strings.Trim(backticked.ReplaceAllString(held, ""), " ,") != "" || len(names) == 0 {
			t.Errorf("%s:%d: got %q, want tests in backticks, or %q and a reason", securityDocument, i+1, held, untested)
		}
		for _, match := range names {
			folder, name, _ := strings.Cut(match[1], ": ")
			folders := words[name]
			if testFunction.MatchString(name) {
				folders = functions[name]
			}
			if !slices.Contains(folders, folder) {
				t.Errorf("%s:%d: no %q in %s; folders that have it: %q", securityDocument, i+1, name, folder, folders)
			}
		}
	}
	if rows < 40 {
		t.Errorf("got %d rows, want the tables of %s", rows, securityDocument)
	}
}
