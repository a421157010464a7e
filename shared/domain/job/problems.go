package job

import (
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// DefinitionProblems is the error for a definition of a job, a pool or a model. It has at least one
// problem. It wraps a fault: InvalidRequest, or Unprocessable if every field is well-formed.
type DefinitionProblems struct {
	Problems []Problem
	fault    *fault.Fault
}

// NewDefinitionProblems returns the error with problems, of which there is at least one.
func NewDefinitionProblems(problems []Problem) *DefinitionProblems {
	code, texts := fault.Unprocessable, make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.String()
		if !p.Unprocessable {
			code = fault.InvalidRequest
		}
	}
	f := fault.New(code, "%s", strings.Join(texts, "; "))
	f.Field = problems[0].Field
	return &DefinitionProblems{problems, f}
}

func (e *DefinitionProblems) Error() string { return e.fault.Error() }

// Unwrap returns the fault.
func (e *DefinitionProblems) Unwrap() error { return e.fault }

// ProblemsOf returns the error with the faults of a definition, of which there is at least one.
// A single fault keeps its code.
func ProblemsOf(faults []*fault.Fault) *DefinitionProblems {
	problems := make([]Problem, len(faults))
	for i, f := range faults {
		problems[i] = Problem{
			Field: f.Field, Problem: strings.TrimPrefix(f.Message, f.Field+": "), Unprocessable: f.Code != fault.InvalidRequest,
		}
	}
	if len(faults) == 1 {
		return &DefinitionProblems{problems, faults[0]}
	}
	return NewDefinitionProblems(problems)
}
