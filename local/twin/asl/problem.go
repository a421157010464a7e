package asl

import (
	"fmt"
	"strings"
)

// Problem is one mistake in a definition.
type Problem struct {
	// Place is where it is, such as "States.Foo.Next" or
	// "States.Foo.Choices[0].Variable"; empty for the definition as a whole.
	Place string
	// What is wrong there.
	What string
	// Unsupported names the part of the language that is used there and that
	// this interpreter does not have; empty for a plain mistake.
	Unsupported string
}

func (p Problem) String() string {
	if p.Place == "" {
		return p.What
	}
	return p.Place + ": " + p.What
}

// InvalidError is a definition with mistakes.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "invalid state machine definition: " + strings.Join(lines, "; ")
}

// UnsupportedError is a definition that uses something that this interpreter
// does not have.
type UnsupportedError struct {
	Feature string // such as "JSONata"
	Place   string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not supported (%s)", e.Feature, e.Place)
}

// problems collects mistakes.
type problems struct{ list []Problem }

func (p *problems) add(place, format string, args ...any) {
	p.list = append(p.list, Problem{Place: place, What: fmt.Sprintf(format, args...)})
}

func (p *problems) unsupported(place, feature string) {
	p.list = append(p.list, Problem{Place: place, What: feature + " is not supported", Unsupported: feature})
}

// join is the place of a field inside of another.
func join(place, field string) string {
	if place == "" {
		return field
	}
	return place + "." + field
}
