package docs

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie"
)

// repository returns the site of all documents, with those of the module infra.
func repository(t *testing.T) *Site {
	t.Helper()
	files := sortie.Documents()
	text, err := os.ReadFile("../../../infra/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files["infra/README.md"] = text
	return New(files)
}

func (s *Site) text(t *testing.T, name string) string {
	t.Helper()
	content, _, err := s.Page(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestEveryDocumentIsAPage compares the site with the files of the repository.
func TestEveryDocumentIsAPage(t *testing.T) {
	t.Parallel()
	s := repository(t)
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "*.md")
	cmd.Dir = "../../.."
	listed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for file := range strings.FieldsSeq(string(listed)) {
		if _, ok := s.names[file]; !ok && !strings.Contains(file, "testdata/") {
			t.Errorf("got no page of %s, want a pattern in documents.go", file)
		}
	}
	for _, g := range readers {
		for _, document := range g.documents {
			if s.names[document] == "" {
				t.Errorf("%s: got no document %s", g.title, document)
			}
		}
	}
}

var attribute = regexp.MustCompile(` (?:href|src)="([^"]*)"`)

// TestLinksLeadSomewhere follows each link of each page, with its anchor.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	s := repository(t)
	names := s.Names()
	for _, name := range names {
		if path.Ext(name) != ".html" {
			continue
		}
		page := s.text(t, name)
		for _, match := range attribute.FindAllStringSubmatch(page, -1) {
			target, anchor, _ := strings.Cut(strings.ReplaceAll(match[1], "&amp;", "&"), "#")
			if strings.HasPrefix(target, "https://") || strings.HasPrefix(target, "http://") {
				continue
			}
			if target == "" {
				target = name
			}
			if !slices.Contains(names, target) {
				t.Errorf("%s: got a link to %s, want a page", name, match[1])
			} else if anchor != "" && !strings.Contains(s.text(t, target), `id="`+anchor+`"`) {
				t.Errorf("%s: got a link to %s, want an anchor of that page", name, match[1])
			}
		}
	}
}

// TestPagesAreComplete checks what each page has, and that it has no script.
func TestPagesAreComplete(t *testing.T) {
	t.Parallel()
	s := repository(t)
	for _, name := range s.Names() {
		content, kind, err := s.Page(name)
		if err != nil || kind == "" || len(content) == 0 {
			t.Fatalf("%s: got %d bytes of %q, %v", name, len(content), kind, err)
		}
		if path.Ext(name) != ".html" {
			continue
		}
		for _, want := range []string{"<!doctype html>", `<link rel="stylesheet" href="style.css">`, "<h2>Start</h2>", "<h2>Contribute</h2>", `aria-current="page"`, "<h1"} {
			if !strings.Contains(string(content), want) {
				t.Errorf("%s: got no %s", name, want)
			}
		}
		if found := regexp.MustCompile(`<script|<iframe|<style| style=| on\w+="|javascript:`).FindString(string(content)); found != "" {
			t.Errorf("%s: got %s, want no script and no style", name, found)
		}
	}
	if !strings.Contains(string(style), "light-dark(") {
		t.Error("got a style with one theme, want light and dark")
	}
	for _, want := range []string{`id="listevents"`, "<code>GET /v1/events</code>", "scope <code>events:read</code>", "Maximum number of events."} {
		if !strings.Contains(s.text(t, reference), want) {
			t.Errorf("got no %s in the reference", want)
		}
	}
}

// TestHostileMarkupIsEscaped renders documents that try to leave their page.
func TestHostileMarkupIsEscaped(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a script":             "<script>alert(1)</script>",
		"markup in a line":     "text <img src=x onerror=alert(1)> text",
		"a comment":            "<!-- --><script>alert(1)</script><!-- -->",
		"a link with a script": "[x](javascript:alert(1))",
		"an entity":            "[x](java&#x73;cript:alert(1))",
		"data":                 "[x](data:text/html,<script>alert(1)</script>)",
		"a picture":            "![x](javascript:alert(1))",
		"another host":         "[x](//evil.example/)",
		"an absolute path":     "[x](/console/sign-out)",
		"an autolink":          "<javascript:alert(1)>",
		"an attribute":         `[x](https://a.example/"onmouseover="alert(1))`,
		"a title":              `[x](https://a.example/ "\"onmouseover=\"alert(1)")`,
		"a heading":            "# <script>alert(1)</script>\n\n## \"onmouseover=\"alert(1)",
		"an info string":       "```\"onmouseover=\"alert(1)\nx\n```",
		"a table":              "| <script> |\n|---|\n| <b onclick=x> |",
		"a folder above":       "[x](../../../../etc/passwd)",
	} {
		page := New(map[string][]byte{"README.md": []byte(text)}).text(t, "")
		_, body, _ := strings.Cut(page, "<main")
		d := xml.NewDecoder(strings.NewReader("<main" + strings.TrimSuffix(body, "</body></html>")))
		d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v in %s", name, err, body)
			}
			start, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			if slices.Contains([]string{"script", "b", "iframe"}, start.Name.Local) {
				t.Errorf("%s: got the element %s in %s", name, start.Name.Local, body)
			}
			for _, a := range start.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || (a.Name.Local == "href" || a.Name.Local == "src") && a.Value != "" && !strings.HasPrefix(a.Value, "https://a.example/") {
					t.Errorf("%s: got the attribute %s=%q in %s", name, a.Name.Local, a.Value, body)
				}
			}
		}
	}
	if _, _, err := New(nil).Page("../documents.go"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for a file that is no page, want fs.ErrNotExist", err)
	}
}
