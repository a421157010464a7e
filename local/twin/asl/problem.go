package asl

import (
	"fmt"
	"strings"
)

// Problem is one mistake in a definition, or a warning about it.
type Problem struct {
	// Place is the mistake's path, such as "States.Foo.Next" or
	// "States.Foo.Choices[0].Variable"; empty for the whole definition.
	Place string
	// What describes the mistake.
	What string
	// Unsupported names an unsupported part of the language that is used there;
	// empty for other mistakes.
	Unsupported string
}

func (p Problem) String() string {
	if p.Place == "" {
		return p.What
	}
	return p.Place + ": " + p.What
}

// InvalidError lists the mistakes of a definition.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "invalid state machine definition: " + strings.Join(lines, "; ")
}

// UnsupportedError reports a definition that uses an unsupported part of the
// language.
type UnsupportedError struct {
	Feature string // such as "JSONata"
	Place   string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not supported (%s)", e.Feature, e.Place)
}

// problems collects mistakes and warnings.
type problems struct{ list, warnings []Problem }

func (p *problems) add(place, format string, args ...any) {
	p.list = append(p.list, Problem{Place: place, What: fmt.Sprintf(format, args...)})
}

func (p *problems) unsupported(place, feature string) {
	p.list = append(p.list, Problem{Place: place, What: feature + " is not supported", Unsupported: feature})
}

func (p *problems) warn(place, what string) {
	p.warnings = append(p.warnings, Problem{Place: place, What: what})
}

// join returns the place of a nested field.
func join(place, field string) string {
	if place == "" {
		return field
	}
	return place + "." + field
}
