package docs

import (
	"bytes"
	_ "embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

//go:embed style.css
var style []byte

// The names of pages that are no documents, and of the style.
const (
	home      = "index.html"
	reference = "api.html"
	styleName = "style.css"
)

// Site is a site of documents. It is safe for concurrent use.
type Site struct {
	files map[string][]byte
	// names are the pages by the path of their document. paths is the inverse, also for pictures.
	names, paths map[string]string
	groups       []group
	markdown     goldmark.Markdown

	mu       sync.Mutex
	rendered map[string][]byte
}

// New returns the site of documents and pictures, by their paths in the repository.
func New(files map[string][]byte) *Site {
	s := &Site{files: files, names: map[string]string{}, paths: map[string]string{}, rendered: map[string][]byte{}}
	rest := map[string]bool{}
	for file := range files {
		switch {
		case path.Ext(file) == ".md" && !strings.Contains(file, "testdata/"):
			rest[file] = true
		case path.Ext(file) == ".webp", path.Ext(file) == ".svg":
			s.names[file] = strings.ReplaceAll(file, "/", "-")
			s.paths[s.names[file]] = file
		}
	}
	s.groups = grouped(rest)
	for _, g := range s.groups {
		for _, document := range g.documents {
			name := nameOf(document)
			s.names[document], s.paths[name] = name, document
		}
	}
	s.markdown = goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(links{s}, 100))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(noMarkup{}, 1))),
	)
	return s
}

// nameOf returns the name of a document's page.
func nameOf(document string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(document, ".md"), "/README")
	if name == "README" {
		return home
	}
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, ".github/"), "/", "-")) + ".html"
}

// Names returns the names of all files of the site.
func (s *Site) Names() []string {
	return append(slices.Sorted(maps.Keys(s.paths)), reference, styleName)
}

// Page returns a file of the site and its content type. The name "" is the first page.
func (s *Site) Page(name string) (content []byte, contentType string, err error) {
	if name == "" {
		name = home
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if content, ok := s.rendered[name]; ok {
		return content, typeOf(name), nil
	}
	document, ok := s.paths[name]
	switch {
	case name == styleName:
		content = style
	case name == reference:
		text, wrong := apiText(contract.OpenAPI())
		if content, err = s.render(name, "", text); wrong != nil {
			err = wrong
		}
	case !ok:
		err = fs.ErrNotExist
	case path.Ext(document) == ".md":
		content, err = s.render(name, document, s.files[document])
	default:
		content = s.files[document]
	}
	if err != nil {
		return nil, "", fmt.Errorf("cannot read the page %q: %w", name, err)
	}
	s.rendered[name] = content
	return content, typeOf(name), nil
}

func typeOf(name string) string {
	return map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".webp": "image/webp", ".svg": "image/svg+xml"}[path.Ext(name)]
}

// render returns the page of a document.
func (s *Site) render(name, document string, text []byte) ([]byte, error) {
	var body bytes.Buffer
	context := parser.NewContext(parser.WithIDs(&slugs{seen: map[string]int{}}))
	context.Set(documentKey, document)
	if err := s.markdown.Convert(text, &body, parser.WithContext(context)); err != nil {
		return nil, err
	}
	return s.layout(name, titleOf(text), body.String())
}

// titleOf returns the text of the first heading.
func titleOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "# "); ok {
			return strings.TrimSpace(strings.ReplaceAll(title, "`", ""))
		}
	}
	return "Sortie"
}
