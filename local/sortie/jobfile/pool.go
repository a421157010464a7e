package jobfile

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// PoolDocument is a definition of a pool with the pool's id.
type PoolDocument struct {
	ID string `json:"id"`
	contract.PoolDefinition
}

// PoolFile is a pool definition that was read from a file.
type PoolFile struct {
	name  string
	lines job.Document
	// Pool is the definition with the id of the pool.
	Pool PoolDocument
}

// ReadPool parses the document of a pool. Fields that this version does not know are errors,
// even if the server knows them.
func ReadPool(name string, text []byte) (PoolFile, error) {
	f := PoolFile{name: name}
	var problems []job.Problem
	f.lines, problems = job.Decode(text, &f.Pool)
	missing := func(is bool, field, want string) {
		if is && !slices.ContainsFunc(problems, func(p job.Problem) bool { return p.Field == field || p.Field == "" }) {
			problems = append(problems, job.Problem{Field: field, Line: f.lines.LineOf(""), Problem: "missing " + field + ", want " + want})
		}
	}
	missing(f.Pool.ID == "", "id", "the name of the pool")
	missing(f.Pool.Limit == nil, "limit", "the number of slots, or 0 for no limit")
	if len(problems) > 0 {
		return f, f.wrong(problems)
	}
	return f, nil
}

// wrong returns a usage error with the problems of the file, one per line, formatted like a
// compiler.
func (f PoolFile) wrong(problems []job.Problem) error {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = File{Name: f.name}.At(p.Line, p.Field, p.Problem)
	}
	return argument.Invalid("%s", strings.Join(lines, "\n"))
}

// Explained adds the file name and line numbers to the problems in a server's error.
func (f PoolFile) Explained(err error) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || len(p.Problems) == 0 {
		return err
	}
	problems := make([]job.Problem, len(p.Problems))
	for i, each := range p.Problems {
		problems[i] = job.Problem{Field: each.Field, Line: f.lines.LineOf(each.Field), Problem: each.Problem}
	}
	slices.SortStableFunc(problems, func(a, b job.Problem) int { return cmp.Compare(a.Line, b.Line) })
	return f.wrong(problems)
}
