package documents_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// document is one Markdown file.
type document struct {
	// path is relative to the repository, with slashes.
	path   string
	blocks []block
	// links are the targets of links, code the texts in backticks, and anchors the slugs of
	// headings.
	links, code, anchors []string
	// tables has the first column of each table, including its head.
	tables [][]string
	// indented has the line numbers of code blocks without a fence.
	indented []int
}

// block is one fenced block.
type block struct {
	line           int
	language, text string
	// marker is the comment on the line before the fence.
	marker string
}

// is reports whether the marker has the name, and returns its argument.
func (b block) is(name string) (string, bool) {
	rest, ok := strings.CutPrefix(b.marker, name)
	return strings.TrimSpace(strings.TrimPrefix(rest, ":")), ok
}

var (
	fence   = regexp.MustCompile("^(\\s*)```([a-z]*)(?:,no_run)?\\s*$") // of rustdoc: compiled, not run
	comment = regexp.MustCompile(`^\s*<!-- (.*) -->\s*$`)
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	span    = regexp.MustCompile("`([^`]+)`")
	heading = regexp.MustCompile(`^#+ (.*)$`)
	slugOut = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// parse parses Markdown as far as the checks need it.
func parse(name, text string) document {
	d := document{path: name}
	var open *block
	indent, last, marker := "", "", ""
	for number, line := range strings.Split(text, "\n") {
		found := fence.FindStringSubmatch(line)
		switch {
		case open != nil && found != nil && found[2] == "":
			d.blocks = append(d.blocks, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case found != nil:
			open, indent = &block{line: number + 1, language: found[2], marker: marker}, found[1]
		default:
			if (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")) && last == "" {
				d.indented = append(d.indented, number+1)
			}
			if cells := strings.Split(line, "|"); len(cells) > 2 && cells[0] == "" {
				cell := strings.TrimSpace(cells[1])
				if !strings.HasPrefix(last, "|") {
					d.tables = append(d.tables, nil)
				}
				if table := &d.tables[len(d.tables)-1]; strings.Trim(cell, "-:") != "" {
					*table = append(*table, cell)
				}
			}
			for _, target := range link.FindAllStringSubmatch(line, -1) {
				d.links = append(d.links, target[1])
			}
			for _, code := range span.FindAllStringSubmatch(line, -1) {
				d.code = append(d.code, code[1])
			}
			if title := heading.FindStringSubmatch(line); title != nil {
				slug := slugOut.ReplaceAllString(strings.ToLower(title[1]), "")
				d.anchors = append(d.anchors, strings.ReplaceAll(slug, " ", "-"))
			}
		}
		marker = ""
		if note := comment.FindStringSubmatch(line); note != nil {
			marker = note[1]
		}
		last = strings.TrimSpace(line)
	}
	return d
}

// repository returns the folder of the repository and its files according to git.
func repository(t *testing.T) (root string, files []string) {
	t.Helper()
	output := func(name string, args ...string) string {
		text, err := exec.CommandContext(t.Context(), name, args...).Output()
		if err != nil {
			t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(text))
	}
	root = output("go", "list", "-m", "-f", "{{.Dir}}")
	listed := output("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard")
	return root, slices.DeleteFunc(strings.Split(listed, "\n"), func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err != nil
	})
}

// documents parses every Markdown file of the repository.
func documents(t *testing.T, root string, files []string) []document {
	t.Helper()
	var list []document
	for _, name := range files {
		if path.Ext(name) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, parse(name, string(text)))
	}
	return list
}

func TestParse(t *testing.T) {
	t.Parallel()
	d := parse("a.md", "# One, `two`\n\nsee [x](y.md#z)\n\n<!-- not run: no -->\n```sh\nls\n```\n\n- a\n  ```json\n  {}\n  ```\n\n| folder | is |\n|---|---|\n| `b` | c |\n\n    code\n")
	want := []block{{6, "sh", "ls\n", "not run: no"}, {11, "json", "{}\n", ""}}
	if !slices.Equal(d.blocks, want) {
		t.Errorf("got the blocks %+v, want %+v", d.blocks, want)
	}
	if len(d.tables) != 1 || !slices.Equal(d.tables[0], []string{"folder", "`b`"}) {
		t.Errorf("got the tables %q", d.tables)
	}
	if why, ok := d.blocks[0].is("not run"); !ok || why != "no" {
		t.Errorf("got the reason %q, want %q", why, "no")
	}
	if !slices.Equal(d.links, []string{"y.md#z"}) || !slices.Equal(d.anchors, []string{"one-two"}) || !slices.Equal(d.indented, []int{19}) {
		t.Errorf("got the links %q, anchors %q, indented lines %v", d.links, d.anchors, d.indented)
	}
}
