package archtest

import (
	"regexp"
	"strings"
	"testing"
)

// The lengths of documents: words of all READMEs, and words of a sentence of the first one.
const (
	mostWords    = 35_000
	meanSentence = 14
)

var (
	// noProse matches the parts of a document that are not sentences: blocks, comments,
	// pictures, headings and rows of tables.
	noProse = regexp.MustCompile("(?ms)^```.*?^```$|<!--.*?-->|!\\[[^]]*\\]\\([^)]*\\)|^[#|][^\n]*$")
	linkTo  = regexp.MustCompile(`\]\([^)]*\)`)
	newItem = regexp.MustCompile(`\n\s*\n|\n- `)
	ended   = regexp.MustCompile(`[.?!]["*]*(?:\s|$)`)
)

// sentences returns the sentences of a document in Markdown.
func sentences(text string) (list []string) {
	text = linkTo.ReplaceAllString(noProse.ReplaceAllString(text, "\n\n"), "")
	for _, item := range newItem.Split(text, -1) {
		for _, sentence := range ended.Split(item, -1) {
			if len(strings.Fields(sentence)) > 0 {
				list = append(list, sentence)
			}
		}
	}
	return list
}

func TestReadmesAreShort(t *testing.T) {
	t.Parallel()
	words := 0
	readmes := trackedText(t, "README.md")
	for _, text := range readmes {
		words += len(strings.Fields(text))
	}
	if words > mostWords {
		t.Errorf("got %d words in all READMEs, want at most %d", words, mostWords)
	}
	first := sentences(readmes["README.md"])
	words = len(strings.Fields(strings.Join(first, " ")))
	if mean := float64(words) / float64(len(first)); len(first) < 40 || mean > meanSentence {
		t.Errorf("README.md: got %d sentences with a mean of %.1f words, want at least 40 with at most %d", len(first), mean, meanSentence)
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	got := strings.Join(sentences("# A heading.\n\nOne [two](three.md).\nFour! **Five.**\n\n- six\n- seven.\n\n```sh\nno. prose.\n```\n<!-- no -->\n| no | prose |\n"), "|")
	if got = strings.Join(strings.Fields(got), " "); got != "One [two|Four|**Five|- six|seven" {
		t.Errorf("got %q, want the five sentences", got)
	}
}

// TestDocumentsHavePictures checks the documents whose readers look at the console. Workers,
// deployments and contributions have no page there.
func TestDocumentsHavePictures(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"README.md", "shared/domain/job/README.md", "shared/domain/inference/README.md", "shared/domain/webhook/README.md",
		"shared/domain/series/README.md", "shared/app/stream/README.md",
	} {
		if !strings.Contains(trackedText(t, name)[name], "![") {
			t.Errorf("%s: got no picture", name)
		}
	}
}
