package importer

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// kind is the type of a value, as named in errors.
type kind string

const (
	kindNull   kind = "no value"
	kindScalar kind = "a string"
	kindList   kind = "a list"
	kindObject kind = "an object"
)

// node is a value of a document. It remembers whether it has been read, so that what has no
// counterpart can be listed. All methods accept nil, which is an absent value.
type node struct {
	// first has the first problem of the document.
	first **Error
	path  string
	line  int
	kind  kind
	// text is the value of a scalar. quoted: it is a string.
	text   string
	quoted bool
	// source: text is the source of an expression that only the other program can evaluate.
	source  bool
	members []member
	// seen: the value has been read, or a part of it. done: the whole value has a counterpart.
	seen, done bool
}

// member is a member of an object, or an item of a list, whose name is its number from 0.
type member struct {
	name  string
	value *node
}

// fail reports a problem of the value, unless the document has another one.
func (n *node) fail(format string, args ...any) {
	if *n.first == nil {
		*n.first = wrong(n.line, "%s: %s", cmp.Or(n.path, "document"), fmt.Sprintf(format, args...))
	}
}

func (n *node) wrong(want string) {
	n.fail("%s, want %s", n.kind, want)
}

// get returns the value at a path, or nil, and marks the values on the path as read.
func (n *node) get(names ...string) *node {
	for _, name := range names {
		n = n.child(name)
	}
	return n
}

func (n *node) child(name string) *node {
	if n != nil && n.kind != kindObject {
		n.wrong("an object")
	}
	found := n.find(name)
	if found != nil {
		found.seen = true
	}
	return found
}

// find returns a member of an object without marking it as read.
func (n *node) find(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name && m.value.kind != kindNull {
			return m.value
		}
	}
	return nil
}

// all returns the members of an object or the items of a list, and marks them as read.
func (n *node) all(want kind) []member {
	if n == nil {
		return nil
	}
	if n.kind != want {
		n.wrong(string(want))
		return nil
	}
	for _, m := range n.members {
		m.value.seen = true
	}
	return n.members
}

// str returns a scalar as a text; empty if it is absent.
func (n *node) str() string {
	if n == nil || n.kind == kindNull {
		return ""
	}
	if n.kind != kindScalar {
		n.wrong("a string")
	}
	return n.text
}

// strs returns a list of texts. A single text is a list of one.
func (n *node) strs() (list []string) {
	if n != nil && n.kind == kindScalar {
		return []string{n.text}
	}
	for _, m := range n.all(kindList) {
		list = append(list, m.value.str())
	}
	return list
}

// number returns a whole number; nil if it is absent. A number that cannot be read is listed as
// lost if it is an expression, and otherwise a problem.
func (n *node) number() *int {
	if n == nil {
		return nil
	}
	value, err := strconv.Atoi(n.str())
	if err != nil && (n.source || strings.Contains(n.text, "${{")) {
		n.seen = false
		return nil
	}
	if err != nil {
		n.fail("%q, want a whole number", shown(n.text))
	}
	return &value
}

// finish marks the whole value as read.
func (n *node) finish() {
	if n != nil {
		n.done = true
	}
}

func (n *node) is(text string) bool { return n != nil && n.kind == kindScalar && n.text == text }

// unread returns the paths and values that have not been read, and the expressions.
func (n *node) unread() (lost []string) {
	switch {
	case n == nil || n.kind == kindNull || n.done:
	case !n.seen:
		lost = append(lost, n.path+": "+shown(n.value()))
	case n.source:
		lost = append(lost, fmt.Sprintf("%s: %s is copied, not evaluated", n.path, shown(n.text)))
	default:
		for _, m := range n.members {
			lost = append(lost, m.value.unread()...)
		}
	}
	return lost
}

// value returns the value in the syntax of YAML, on one line.
func (n *node) value() string {
	if n == nil {
		return ""
	}
	switch n.kind {
	case kindNull:
		return "null"
	case kindScalar:
		if n.quoted {
			return strconv.Quote(n.text)
		}
		return n.text
	case kindList, kindObject:
	}
	parts := make([]string, len(n.members))
	for i, m := range n.members {
		if parts[i] = m.value.value(); n.kind == kindObject {
			parts[i] = m.name + ": " + parts[i]
		}
	}
	if n.kind == kindList {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
