// Package mutant makes small mistakes in Go files, one at a time, to see whether tests notice.
package mutant

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
)

// Mutant is a file with one mistake.
type Mutant struct {
	File string
	Line int
	// Kind says what was changed: "< to >=".
	Kind   string
	Source []byte
}

// String returns the place and the kind.
func (m Mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Kind) }

// swapped are the operators that are replaced, each by the ones that a slip of the author would
// have written.
var swapped = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
}

// Of returns all mutants of a file, in the order of their places: other operators, dropped
// negations, conditions that always or never hold, dropped calls and assignments, and errors
// that are not returned. Some do not compile.
func Of(file string, source []byte) ([]Mutant, error) {
	positions := token.NewFileSet()
	tree, err := parser.ParseFile(positions, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", file, err)
	}
	f := finder{file: file, source: source, positions: positions}
	ast.Inspect(tree, f.visit)
	slices.SortStableFunc(f.found, func(a, b Mutant) int { return a.Line - b.Line })
	return f.found, nil
}

type finder struct {
	file      string
	source    []byte
	positions *token.FileSet
	found     []Mutant
}

// replace adds a mutant in which the text from a position to another is replaced.
func (f *finder) replace(from, to token.Pos, text, kind string) {
	start, end := f.positions.Position(from), f.positions.Position(to)
	source := slices.Concat(f.source[:start.Offset], []byte(text), f.source[end.Offset:])
	f.found = append(f.found, Mutant{f.file, start.Line, kind, source})
}

func (f *finder) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BinaryExpr:
		for _, other := range swapped[n.Op] {
			f.replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String(), n.Op.String()+" to "+other.String())
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.replace(n.OpPos, n.X.Pos(), "", "negation dropped")
		}
	case *ast.IfStmt:
		f.replace(n.Cond.Pos(), n.Cond.Pos(), "false && ", "condition never holds")
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.ReturnStmt:
		f.returned(n)
	}
	return true
}

// statements drops calls and assignments, one at a time.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch n := s.(type) {
		case *ast.ExprStmt:
			f.replace(n.Pos(), n.End(), "", "call dropped")
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				f.replace(n.Pos(), n.End(), "", "assignment dropped")
			}
		}
	}
}

// returned replaces a returned err by nil, and a returned constant truth by the other.
func (f *finder) returned(n *ast.ReturnStmt) {
	for _, result := range n.Results {
		name, isName := result.(*ast.Ident)
		if !isName {
			continue
		}
		if other := map[string]string{"err": "nil", "true": "false", "false": "true"}[name.Name]; other != "" {
			f.replace(name.Pos(), name.End(), other, name.Name+" to "+other)
		}
	}
}
