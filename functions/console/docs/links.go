package docs

import (
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// documentKey has the path of the document in a context of the parser.
var documentKey = parser.NewContextKey()

// links replaces the destinations of links and pictures by those of the site.
type links struct{ site *Site }

// Transform implements parser.ASTTransformer.
func (l links) Transform(root *ast.Document, _ text.Reader, c parser.Context) {
	document, _ := c.Get(documentKey).(string)
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = []byte(l.site.resolve(document, string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(l.site.resolve(document, string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		panic(err) // the function returns none
	}
}

// resolve returns the destination of a link of a document. It is empty if the site has no such
// page and the link is no address with http or https.
func (s *Site) resolve(document, destination string) string {
	to, err := url.Parse(destination)
	if err != nil {
		return ""
	}
	switch {
	case to.Scheme == "https" || to.Scheme == "http":
		return to.String()
	case to.Scheme != "" || to.Host != "" || strings.HasPrefix(to.Path, "/"):
		return ""
	case to.Path == "":
		return "#" + to.Fragment
	}
	target := path.Join(path.Dir(document), to.Path)
	name := s.names[target]
	if name == "" {
		name = s.names[path.Join(target, "README.md")]
	}
	if name == "" {
		return ""
	}
	return (&url.URL{Path: name, Fragment: to.Fragment}).String()
}

// noMarkup renders raw HTML as nothing, and links without a destination as their text.
type noMarkup struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (noMarkup) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	nothing := func(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) { return ast.WalkSkipChildren, nil }
	r.Register(ast.KindHTMLBlock, nothing)
	r.Register(ast.KindRawHTML, nothing)
	r.Register(ast.KindLink, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || len(link.Destination) == 0 {
			return ast.WalkContinue, nil
		}
		tag := "</a>"
		if entering {
			tag = `<a href="` + string(util.EscapeHTML(util.URLEscape(link.Destination, true))) + `">`
		}
		_, err := w.WriteString(tag)
		return ast.WalkContinue, err
	})
}

// slugs makes the anchors of headings as GitHub does.
type slugs struct{ seen map[string]int }

// Generate implements parser.IDs.
func (s *slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(string(value)))
	s.seen[id]++
	if n := s.seen[id]; n > 1 {
		id = fmt.Sprintf("%s-%d", id, n-1)
	}
	return []byte(id)
}

// Put implements parser.IDs.
func (s *slugs) Put(value []byte) { s.seen[string(value)]++ }
