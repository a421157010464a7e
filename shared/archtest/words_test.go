package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// avoided lists phrases that comments, strings and documents do not use, with
// the words that replace them. CONTRIBUTING.md explains the style.
var avoided = []struct{ pattern, instead string }{
	{`whoever|nobody|somebody|anybody`, "the component, caller or user that acts"},
	{`wish|wishes|wished`, "cancel request, request"},
	{`told|tells`, "reported, published, delivered, returns"},
	{`heard|unheard`, "contacted, received"},
	{`mend|mends|mended|mending`, "reconcile, fix, repair"},
	{`anew`, "again, new"},
	{`(is|are|was|were|that) (?-i:none)`, "no, not one of, zero"},
	{`(was|is|are|can be|what is|to be) had`, "available, returned"},
	{`as \w+ has it`, "as in, as defined by"},
	{`foresaw|foreseen by`, "expected"},
	{`malady|maladies|ills`, "fault, defect"},
	{`(goes|gone|went|going|go) on`, "continues, resumes"},
	{`held to`, "checked against, limited to, must"},
	{`for ever`, "forever, without a limit"},
	{`stands`, "is"},
	{`insist|insists|insisted`, "retry"},
	{`shelf|shelves`, "bucket"},
	{`in line|the line of|next in line|first in line`, "queued, the queue of"},
	{`judge|judges|judged|judging|judgement|judgements`, "reconcile, evaluate"},
	{`woken`, "due"},
	{`outskirts|struck|blows?`, "fixtures, injected, fault"},
	{`bears? with|bear an`, "retry"},
	{`lies (in|on|under|beside|there|before|behind|above|below|at|with|to)`, "is"},
	{`come of|comes of|came of`, "result of"},
	{`is no more`, "is gone, does not exist"},
}

// quoting lists the files that may contain the phrases: this one, those that read names of
// version 0.0, and one with the name of a stored attribute.
var quoting = []string{
	"shared/archtest/words_test.go", "shared/adapter/dynamo/heartbeat.go", "shared/domain/run/earlier.go", "shared/wire/lambdakit/golden_test.go",
	"shared/wire/lambdakit/task_test.go", "local/twin/flymachines/load.go", "local/twin/flymachines/life_test.go",
}

// avoidedWords matches each of the phrases as whole words, in any case.
var avoidedWords = func() *regexp.Regexp {
	patterns := make([]string, len(avoided))
	for i, a := range avoided {
		patterns[i] = a.pattern
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(patterns, "|") + `)\b`)
}()

func TestPlainWords(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if slices.Contains(quoting, s.Path) {
			continue
		}
		for _, group := range s.File.Comments {
			for _, comment := range group.List {
				checkWords(t, s.Line(comment), comment.Text)
			}
		}
		ast.Inspect(s.File, func(node ast.Node) bool {
			if text, ok := node.(*ast.BasicLit); ok && text.Kind == token.STRING {
				checkWords(t, s.Line(text), text.Value)
			}
			return true
		})
	}
	for _, name := range documents(t) {
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		checkWords(t, name, string(text))
	}
}

// documents returns the paths of the tracked documents that are not Go files. It omits testdata,
// except stories, and package-lock.json.
func documents(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "*.md", "*.yaml", "*.yml", "*.json", "*.py", "*.rs", "*.sh", "*.toml", "Makefile", ".ci/run", "*/stories/*")
	list.Dir = root(t)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("cannot list the files: %v", err)
	}
	var names []string
	for name := range strings.FieldsSeq(string(out)) {
		if story := strings.Contains(name, "/stories/"); story || !strings.Contains(name, "testdata/") && !strings.HasSuffix(name, "package-lock.json") {
			names = append(names, name)
		}
	}
	return names
}

func checkWords(t *testing.T, where, text string) {
	t.Helper()
	for i, line := range strings.Split(text, "\n") {
		for _, found := range avoidedWords.FindAllString(line, -1) {
			t.Errorf("%s (+%d): %q, want %s", where, i, found, insteadOf(found))
		}
	}
}

func insteadOf(found string) string {
	for _, a := range avoided {
		if regexp.MustCompile(`(?i)^(?:` + a.pattern + `)$`).MatchString(found) {
			return a.instead
		}
	}
	return "plain words"
}

func TestAvoidedWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Nobody waits.": true, "the command line": false, "what the worker needs": false, "is held to it": true,
		"understands": false, "it stands": true, "the run goes on": true, "unmended": false, "a newer item": false,
	} {
		if got := avoidedWords.MatchString(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
