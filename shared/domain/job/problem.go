package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem describes an error in a document and what would be valid.
type Problem struct {
	// Field is the path of the field, such as "constraints.catchUpWindow"; empty for the whole
	// document.
	Field string
	// Line is the line number in the document, from 1; 0 without a document.
	Line int
	// Problem is a noun phrase with the offending value.
	Problem string
	// Unprocessable: each field is well-formed, but they contradict each other or the
	// capabilities of the deployment.
	Unprocessable bool
}

// String returns the line, the field and the problem.
func (p Problem) String() string {
	text := p.Problem
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	if p.Line > 0 {
		text = fmt.Sprintf("line %d: %s", p.Line, text)
	}
	return text
}

// in prefixes the field of the problem with the name of the field or list that contains it.
func (p *Problem) in(name string) *Problem {
	p.Field = join(name, p.Field)
	return p
}

// problems collects the problems of a document and the lines of its fields.
type problems struct {
	found []Problem
	// lines has the line number of each field in the document; nil without a document.
	lines map[string]int
	// unread are the fields that could not be read.
	unread map[string]bool
	// written has the literals of integers that are too large for an int.
	written map[string]string
}

// bad adds a problem of a malformed field.
func (p *problems) bad(field, format string, args ...any) {
	p.add(Problem{Field: field, Problem: fmt.Sprintf(format, args...)})
}

// addConflict adds a problem of a field that contradicts another field or the deployment.
func (p *problems) addConflict(field, format string, args ...any) {
	p.add(Problem{Field: field, Problem: fmt.Sprintf(format, args...), Unprocessable: true})
}

// add adds a problem, unless the field could not be read and so already has a problem.
func (p *problems) add(problem Problem) {
	for path := problem.Field; path != ""; path = parent(path) {
		if p.unread[path] {
			return
		}
	}
	if p.full() {
		return
	}
	if problem.Line == 0 {
		problem.Line = p.lineOf(problem.Field)
	}
	p.found = append(p.found, problem)
}

// maxProblems is the maximum number of problems that are reported for a document.
const maxProblems = 100

func (p *problems) full() bool { return len(p.found) == maxProblems }

// has reports whether the field has a problem.
func (p *problems) has(field string) bool {
	return slices.ContainsFunc(p.found, func(problem Problem) bool { return problem.Field == field })
}

// lineOf returns the line number of a field, or else of the nearest object around it.
func (p *problems) lineOf(path string) int {
	for ; path != ""; path = parent(path) {
		if line, ok := p.lines[path]; ok {
			return line
		}
	}
	return p.lines[""]
}

// sorted returns the problems by line and field.
func (p *problems) sorted() []Problem {
	slices.SortStableFunc(p.found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field))
	})
	return p.found
}

// join returns the path of a field. Both parts may be empty.
func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

func parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }
