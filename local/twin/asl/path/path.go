// Package path is the JSONPath of Step Functions: the dialect of Jayway's Java
// library, with "$$" for the context object.
//
// It knows names ($.a, $.with-dash, $['any name']), indexes (from the end where
// negative), unions, slices, wildcards, deep scans, filters and length(). A
// path without a way to find several values is definite: it finds one or it
// fails. Any other path never fails: it finds a list, which may be empty.
//
// Errors are worded as Step Functions words them, because they end up in the
// cause of a failed execution.
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
	// find calls yield with each value that the step finds in value. top is
	// what "$" means in a filter.
	find(value, top any, yield func(any))
	// text is the step as Jayway writes it in messages.
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

// String is the path as it was written.
func (p Path) String() string { return p.text }

// Context tells whether the path begins with "$$": it is about the context
// object, not about the state's data.
func (p Path) Context() bool { return p.context }

// Definite tells whether the path can find one value only.
func (p Path) Definite() bool { return p.definite }

// Root tells whether the path is the whole document, "$" or "$$".
func (p Path) Root() bool { return len(p.steps) == 0 }

// Reference tells whether the path names one place by names and indexes from
// the beginning alone, as ResultPath must.
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
