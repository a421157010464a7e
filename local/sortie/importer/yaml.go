package importer

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// The limits of a document. Anchors can make a small file huge.
const (
	maxDepth = 64
	maxNodes = 100_000
)

// reader converts a YAML file into nodes.
type reader struct {
	first *Error
	// offset is the number of lines before the document.
	offset  int
	anchors map[string]ast.Node
	left    int
}

// readYAML returns the documents of a file that have content. first is where the methods of the
// nodes report problems. Each document is parsed alone, because the parser needs quadratic time.
func readYAML(text []byte) (documents []*node, first **Error, problem *Error) {
	if problem := deep(text); problem != nil {
		return nil, nil, problem
	}
	r := &reader{left: maxNodes}
	lines := bytes.SplitAfter(text, []byte{'\n'})
	for start := 0; start < len(lines); {
		end := start + 1
		for end < len(lines) && !bytes.HasPrefix(lines[end], []byte("---")) {
			end++
		}
		file, err := parser.ParseBytes(bytes.Join(lines[start:end], nil), 0)
		if err != nil {
			return nil, nil, syntaxError(text, start, err)
		}
		r.offset, r.anchors, start = start, map[string]ast.Node{}, end
		for _, d := range file.Docs {
			if d.Body == nil || d.Body.Type() == ast.CommentType || d.Body.Type() == ast.DirectiveType {
				continue
			}
			n := r.node(d.Body, "", 0)
			n.seen = true
			if documents = append(documents, n); r.first != nil {
				return nil, nil, r.first
			}
		}
	}
	if len(documents) == 0 {
		return nil, nil, wrong(1, "no document, want YAML")
	}
	return documents, &r.first, nil
}

// deep returns an error for a line with too many open brackets or nested lists, for which parsers
// need much time. Brackets in texts count too, so more than maxDepth are permitted.
func deep(text []byte) *Error {
	open, dashes, line := 0, 0, 1
	for _, c := range text {
		switch c {
		case '\n':
			line++
			dashes = 0
		case '[', '{', '(':
			open++
		case ']', '}', ')':
			open = max(open-1, 0)
		case '-', '?', '!':
			dashes++
		case ' ', '\t':
		default:
			dashes = 0
		}
		if open > 8*maxDepth || dashes > 4*maxDepth {
			return wrong(line, "nested too deeply, want at most %d levels", maxDepth)
		}
	}
	return nil
}

// template matches an expression of a template: {{ without a $, or [[ as in packs of Nomad.
var template = regexp.MustCompile(`(?m)(^|[^$]){{|\[\[ `)

func syntaxError(text []byte, offset int, err error) *Error {
	problem := &Error{offset + 1, "malformed YAML"}
	if known, ok := errors.AsType[yaml.Error](err); ok {
		problem.Problem += ": " + known.GetMessage()
		if t := known.GetToken(); t != nil && t.Position != nil {
			problem.Line = offset + t.Position.Line
		}
	}
	if template.Match(text) {
		problem.Problem += "; a template must be rendered first, as by helm template"
	}
	return problem
}

func (r *reader) line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return r.offset + t.Position.Line
	}
	return r.offset + 1
}

func (r *reader) fail(line int, format string, args ...any) {
	if r.first == nil {
		r.first = wrong(line, format, args...)
	}
}

// node converts a value. After the first problem it returns values without content.
func (r *reader) node(from ast.Node, path string, depth int) *node {
	n := &node{first: &r.first, path: path, line: r.line(from), kind: kindNull}
	if r.left--; r.left < 0 {
		r.fail(n.line, "more than %d values, with those of aliases, want fewer", maxNodes)
	} else if depth > maxDepth {
		r.fail(n.line, "nested too deeply, want at most %d levels", maxDepth)
	}
	if r.first != nil {
		return n
	}
	switch v := from.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		n.kind, n.text, n.quoted = kindScalar, v.Value, true
	case *ast.LiteralNode:
		n.kind, n.text, n.quoted = kindScalar, v.Value.Value, true
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = kindScalar, from.GetToken().Value
	case *ast.SequenceNode:
		n.kind = kindList
		for i, item := range v.Values {
			name := strconv.Itoa(i)
			n.members = append(n.members, member{name, r.node(item, join(path, name), depth+1)})
		}
	case *ast.MappingNode:
		r.object(n, v.Values, depth)
	case *ast.MappingValueNode:
		r.object(n, []*ast.MappingValueNode{v}, depth)
	case *ast.AnchorNode:
		r.anchors[v.Name.GetToken().Value] = v.Value
		return r.node(v.Value, path, depth)
	case *ast.AliasNode:
		name := v.Value.GetToken().Value
		if to := r.anchors[name]; to != nil {
			return r.node(to, path, depth+1)
		}
		r.fail(n.line, "unknown anchor *%s; quote a value that starts with *", shown(name))
	default:
		r.fail(n.line, "%s is not supported, want a plain value", strings.ToLower(from.Type().String()))
	}
	return n
}

func (r *reader) object(n *node, values []*ast.MappingValueNode, depth int) {
	n.kind = kindObject
	for _, v := range values {
		n.line = min(n.line, r.line(v.Key))
		name := r.node(v.Key, n.path, depth+1)
		if name.kind != kindScalar {
			r.fail(n.line, "name of a field is %s, want a string", name.kind)
		}
		n.members = append(n.members, member{name.text, r.node(v.Value, join(n.path, name.text), depth+1)})
	}
}
