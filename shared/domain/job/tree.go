package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// kind is the type of a value in a document, as named in errors.
type kind string

const (
	kindNull   kind = "null"
	kindBool   kind = "true or false"
	kindNumber kind = "a number"
	kindText   kind = "a string"
	kindList   kind = "a list"
	kindObject kind = "an object"
)

// node is a value of a document, with its line.
type node struct {
	kind kind
	line int
	// text is the value of kindText and kindBool, and the JSON literal of kindNumber.
	text    string
	items   []node
	members []member
}

type member struct {
	name  string
	line  int
	value node
}

// maxDepth is the maximum nesting depth of a document.
const maxDepth = 32

// readTree reads a JSON document, or a single YAML 1.2 document without aliases, tags and merge
// keys.
func readTree(document []byte) (node, *Problem) {
	document = bytes.TrimPrefix(document, []byte("\uFEFF"))
	switch {
	case !utf8.Valid(document):
		return node{}, &Problem{Line: 1, Problem: "invalid UTF-8, want a document in UTF-8"}
	case json.Valid(document):
		tokens := json.NewDecoder(bytes.NewReader(document))
		tokens.UseNumber()
		return (&jsonReader{document, tokens, 0, 1}).value(0)
	}
	return readYAML(document)
}

// jsonReader reads valid JSON.
type jsonReader struct {
	document []byte
	tokens   *json.Decoder
	// line is the line number at offset.
	offset int64
	line   int
}

func (r *jsonReader) token() (json.Token, int) {
	token, err := r.tokens.Token()
	if err != nil { // unreachable: the document is valid
		return nil, r.line
	}
	end := r.tokens.InputOffset()
	r.line += bytes.Count(r.document[r.offset:end], []byte{'\n'})
	r.offset = end
	return token, r.line
}

func (r *jsonReader) value(depth int) (node, *Problem) {
	token, line := r.token()
	switch v := token.(type) {
	case string:
		return node{kind: kindText, line: line, text: v}, nil
	case bool:
		return node{kind: kindBool, line: line, text: strconv.FormatBool(v)}, nil
	case json.Number:
		return node{kind: kindNumber, line: line, text: v.String()}, nil
	case json.Delim:
		if depth == maxDepth {
			return node{}, tooDeep(line)
		}
		return r.collection(v, line, depth)
	}
	return node{kind: kindNull, line: line}, nil
}

func (r *jsonReader) collection(start json.Delim, line, depth int) (found node, problem *Problem) {
	found = node{kind: kindList, line: line}
	if start == '{' {
		found.kind = kindObject
	}
	for r.tokens.More() {
		name, at := "", 0
		if start == '{' {
			var key json.Token
			key, at = r.token()
			name, _ = key.(string)
		}
		value, problem := r.value(depth + 1)
		if problem != nil {
			return node{}, problem
		}
		if start == '{' {
			found.members = append(found.members, member{name, at, value})
		} else {
			found.items = append(found.items, value)
		}
	}
	r.token()
	return found, nil
}

func tooDeep(line int) *Problem {
	return &Problem{Line: line, Problem: fmt.Sprintf("nested too deeply, want at most %d levels", maxDepth)}
}

// dashes matches too many nested lists on one line.
var dashes = regexp.MustCompile(fmt.Sprintf(`(-[ \t]+){%d}`, maxDepth+1))

// deepLine returns a line with too many open brackets or nested lists, or 0. The YAML parser
// needs quadratic time for them, so they are refused before. Brackets in texts count too, so
// more than maxDepth are permitted.
func deepLine(document []byte) int {
	const most = 8 * maxDepth
	open, line := 0, 1
	for _, c := range document {
		switch c {
		case '\n':
			line++
		case '[', '{':
			open++
		case ']', '}':
			open = max(open-1, 0)
		}
		if open > most {
			return line
		}
	}
	if found := dashes.FindIndex(document); found != nil {
		return 1 + bytes.Count(document[:found[0]], []byte{'\n'})
	}
	return 0
}

func readYAML(document []byte) (node, *Problem) {
	if line := deepLine(document); line > 0 {
		return node{}, tooDeep(line)
	}
	file, err := parser.ParseBytes(document, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return node{}, syntaxProblem(document, err)
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		bodies = append(bodies, doc.Body)
	}
	switch {
	case len(bodies) == 0:
		return node{}, &Problem{Line: 1, Problem: "empty document, want a job: an object with id and image"}
	case len(bodies) > 1:
		return node{}, &Problem{Line: lineOf(bodies[1]), Problem: "second document, want one job in a file"}
	}
	return fromYAML(bodies[0], 0)
}

// reserved matches a plain value that starts with an indicator of YAML. Unquoted schedules
// often do.
var reserved = regexp.MustCompile(`:\s+[*@&%` + "`" + `]`)

func syntaxProblem(document []byte, err error) *Problem {
	p := &Problem{Line: 1, Problem: "malformed YAML"}
	flow := bytes.HasPrefix(bytes.TrimSpace(document), []byte{'{'})
	if flow {
		p.Problem = "malformed JSON or YAML"
	}
	if known, ok := errors.AsType[yaml.Error](err); ok {
		p.Problem += ": " + known.GetMessage()
		if token := known.GetToken(); token != nil && token.Position != nil {
			p.Line = token.Position.Line
		}
	}
	lines := bytes.Split(document, []byte{'\n'})
	if p.Line > len(lines) || flow {
		return p
	}
	p.Field = fieldAt(lines[:p.Line])
	switch line := lines[p.Line-1]; {
	case indentedByTab.Match(line):
		p.Problem = "tab in the indentation, want spaces"
	case reserved.Match(line):
		p.Problem += "; quote a value that starts with *, @, & or %"
	}
	return p
}

var (
	indentedByTab = regexp.MustCompile(`^ *\t`)
	blockField    = regexp.MustCompile(`^( *)([\w-]+) *:(\s|$)`)
)

// fieldAt returns the path of the field on the last line, as far as the indentation shows it;
// empty if no line starts a field.
func fieldAt(lines [][]byte) (path string) {
	indent := math.MaxInt
	for _, line := range slices.Backward(lines) {
		found := blockField.FindSubmatch(line)
		if found == nil || len(found[1]) >= indent {
			continue
		}
		indent = len(found[1])
		path = join(limit.Cut(string(found[2]), nameLimit), path)
	}
	return path
}

func lineOf(n ast.Node) int {
	if token := n.GetToken(); token != nil && token.Position != nil {
		return token.Position.Line
	}
	return 1
}

var (
	// notYAML12 matches numbers of YAML 1.1 that have another value or are strings in YAML 1.2,
	// such as 010 and 1_000.
	notYAML12 = regexp.MustCompile(`^[-+]?0\d|_`)
	// bigNumber matches a plain number. The parser returns it as a string if it does not fit in
	// 64 bits.
	bigNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$`)
)

func fromYAML(n ast.Node, depth int) (node, *Problem) {
	line := lineOf(n)
	if depth > maxDepth {
		return node{}, tooDeep(line)
	}
	switch v := n.(type) {
	case *ast.NullNode:
		return node{kind: kindNull, line: line}, nil
	case *ast.BoolNode:
		return node{kind: kindBool, line: line, text: strconv.FormatBool(v.Value)}, nil
	case *ast.IntegerNode:
		if notYAML12.MatchString(v.Token.Value) {
			return node{kind: kindText, line: line, text: v.Token.Value}, nil
		}
		return node{kind: kindNumber, line: line, text: fmt.Sprint(v.Value)}, nil
	case *ast.FloatNode:
		return node{kind: kindNumber, line: line, text: strconv.FormatFloat(v.Value, 'g', -1, 64)}, nil
	case *ast.StringNode:
		if v.Token.Type == token.StringType && bigNumber.MatchString(v.Value) {
			return node{kind: kindNumber, line: line, text: v.Value}, nil
		}
		return node{kind: kindText, line: line, text: v.Value}, nil
	case *ast.LiteralNode:
		return node{kind: kindText, line: line, text: v.Value.Value}, nil
	case *ast.SequenceNode:
		found := node{kind: kindList, line: line}
		for i, item := range v.Values {
			value, problem := fromYAML(item, depth+1)
			if problem != nil {
				return node{}, problem.in(strconv.Itoa(i))
			}
			found.items = append(found.items, value)
		}
		return found, nil
	case *ast.MappingNode:
		return fromMapping(v.Values, line, depth)
	case *ast.MappingValueNode:
		return fromMapping([]*ast.MappingValueNode{v}, line, depth)
	case *ast.AliasNode:
		return node{}, &Problem{Line: line, Problem: "an alias is not supported; quote a value that starts with *"}
	}
	return node{}, &Problem{Line: line, Problem: fmt.Sprintf("%s is not supported, want a plain value", strings.ToLower(n.Type().String()))}
}

func fromMapping(values []*ast.MappingValueNode, line, depth int) (node, *Problem) {
	found := node{kind: kindObject, line: line}
	for _, v := range values {
		key, problem := fromYAML(v.Key, depth+1)
		if problem != nil {
			return node{}, problem
		}
		if key.kind != kindText && key.kind != kindNumber && key.kind != kindBool {
			return node{}, &Problem{Line: lineOf(v.Key), Problem: "name of a field is " + string(key.kind) + ", want a string"}
		}
		value, problem := fromYAML(v.Value, depth+1)
		if problem != nil {
			return node{}, problem.in(limit.Cut(key.text, nameLimit))
		}
		found.line = min(found.line, key.line)
		found.members = append(found.members, member{key.text, key.line, value})
	}
	return found, nil
}
