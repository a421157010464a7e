// Package path implements the JSONPath of Step Functions: the dialect of
// Jayway's Java library, with "$$" for the context object.
//
// It supports names ($.a, $.with-dash, $['any name']), indexes (negative from
// the end), unions, slices, wildcards, deep scans, filters and length(). A path
// that can match only one value is definite: it returns the value or an error.
// Any other path returns a list, which may be empty.
//
// Errors are worded as in Step Functions, because they become the cause of a
// failed execution.
package path

import "strconv"

// Path is a parsed path. It is immutable.
type Path struct {
	text     string
	context  bool
	definite bool
	steps    []step
}

// step is one part of a path.
type step interface {
	// find calls yield with each match of the step in value. top is the value
	// of "$" in a filter.
	find(value, top any, yield func(any))
	// text returns the step as Jayway writes it in messages.
	text() string
}

type (
	nameStep     struct{ name string }
	namesStep    struct{ names []string }
	indexStep    struct{ index int }
	indexesStep  struct{ indexes []int }
	sliceStep    struct{ from, to, step *int }
	wildcardStep struct{}
	deepStep     struct{ next step }
	filterStep   struct {
		condition condition
		source    string
	}
	lengthStep struct{}
)

func (s nameStep) text() string { return "['" + s.name + "']" }

func (s namesStep) text() string {
	text := "["
	for i, name := range s.names {
		if i > 0 {
			text += ","
		}
		text += "'" + name + "'"
	}
	return text + "]"
}

func (s indexStep) text() string { return "[" + strconv.Itoa(s.index) + "]" }

func (s indexesStep) text() string {
	text := "["
	for i, index := range s.indexes {
		if i > 0 {
			text += ","
		}
		text += strconv.Itoa(index)
	}
	return text + "]"
}

func (s sliceStep) text() string {
	bound := func(b *int) string {
		if b == nil {
			return ""
		}
		return strconv.Itoa(*b)
	}
	return "[" + bound(s.from) + ":" + bound(s.to) + "]"
}

func (wildcardStep) text() string { return "[*]" }
func (s deepStep) text() string   { return ".." + s.next.text() }
func (s filterStep) text() string { return "[?(" + s.source + ")]" }
func (lengthStep) text() string   { return ".length()" }

// String returns the text of the path.
func (p Path) String() string { return p.text }

// Context reports whether the path begins with "$$" and so refers to the
// context object.
func (p Path) Context() bool { return p.context }

// Definite reports whether the path can match one value only.
func (p Path) Definite() bool { return p.definite }

// Root reports whether the path is "$" or "$$".
func (p Path) Root() bool { return len(p.steps) == 0 }

// Reference reports whether the path consists of names and non-negative
// indexes, as ResultPath must.
func (p Path) Reference() bool {
	for _, s := range p.steps {
		switch s := s.(type) {
		case nameStep:
		case indexStep:
			if s.index < 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}
