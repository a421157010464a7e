package importer

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// hclReader converts HCL into nodes. A block is an object; its label is the name of a member.
type hclReader struct {
	first *Error
	text  []byte
	scope *hcl.EvalContext
	left  int
}

// hclLimit limits the size of a file, because the parser recurses for each operator.
const hclLimit = 256 << 10

// maxDefault limits the text of a default of a variable, which each use copies.
const maxDefault = 1 << 10

// readHCL reads a file. It evaluates variables with their defaults. Other expressions keep their
// source.
func readHCL(name string, text []byte) (root *node, first **Error, problem *Error) {
	if problem := deep(text); problem != nil {
		return nil, nil, problem
	}
	if len(text) > hclLimit {
		return nil, nil, wrong(1, "more than %d bytes, want at most that", hclLimit)
	}
	file, problems := hclsyntax.ParseConfig(text, name, hcl.InitialPos)
	for range maxDepth {
		if !unquoteNames(text, problems) {
			break
		}
		file, problems = hclsyntax.ParseConfig(text, name, hcl.InitialPos)
	}
	if problems.HasErrors() {
		p := problems[0]
		hint := ""
		if template.Match(text) {
			hint = "; a template must be rendered first"
		}
		return nil, nil, wrong(p.Subject.Start.Line, "%s%s", shown(p.Summary+": "+p.Detail), hint)
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok { // unreachable: the parser of this syntax returns this type
		return nil, nil, wrong(1, "no HCL")
	}
	r := &hclReader{text: text, left: maxNodes}
	variables := map[string]cty.Value{}
	for _, block := range body.Blocks {
		value, ok := block.Body.Attributes["default"]
		if block.Type != "variable" || len(block.Labels) != 1 || !ok || len(value.Expr.Range().SliceBytes(text)) > maxDefault {
			continue
		}
		if v, ok := r.evaluate(value.Expr); ok {
			variables[block.Labels[0]] = v
		}
	}
	r.scope = &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(variables)}}
	root = r.body(body, "", 1)
	root.seen = true
	return root, &r.first, r.first
}

// unquoteNames replaces the quotes around names of attributes by spaces: Nomad accepts them, and
// the parser does not. The subject of its problem is the first quote.
func unquoteNames(text []byte, problems hcl.Diagnostics) (changed bool) {
	for _, p := range problems {
		if p.Summary != "Invalid argument name" {
			continue
		}
		start := p.Subject.Start.Byte
		if length := bytes.IndexByte(text[start+1:], '"'); length > 0 && hclsyntax.ValidIdentifier(string(text[start+1:start+1+length])) {
			text[start], text[start+1+length] = ' ', ' '
			changed = true
		}
	}
	return changed
}

func (r *hclReader) node(k kind, path string, line int) *node {
	if r.left--; r.left < 0 && r.first == nil {
		r.first = wrong(line, "more than %d values, want fewer", maxNodes)
	}
	return &node{first: &r.first, path: path, line: line, kind: k}
}

// body converts attributes and blocks in their order.
func (r *hclReader) body(body *hclsyntax.Body, path string, line int) *node {
	n := r.node(kindObject, path, line)
	for _, a := range slices.SortedFunc(maps.Values(body.Attributes), func(a, b *hclsyntax.Attribute) int {
		return cmp.Compare(a.SrcRange.Start.Byte, b.SrcRange.Start.Byte)
	}) {
		n.members = append(n.members, member{a.Name, r.expression(a.Expr, join(path, a.Name))})
	}
	labelled := map[string]*node{}
	for _, block := range body.Blocks {
		at, line := join(path, block.Type), block.TypeRange.Start.Line
		if len(block.Labels) == 0 {
			n.members = append(n.members, member{block.Type, r.body(block.Body, at, line)})
			continue
		}
		group := labelled[block.Type]
		if group == nil {
			group = r.node(kindObject, at, line)
			labelled[block.Type] = group
			n.members = append(n.members, member{block.Type, group})
		}
		label := strings.Join(block.Labels, " ")
		group.members = append(group.members, member{label, r.body(block.Body, join(at, label), line)})
	}
	return n
}

// expression converts an expression. Lists and objects are converted by their parts.
func (r *hclReader) expression(e hclsyntax.Expression, path string) *node {
	line := e.Range().Start.Line
	switch v := e.(type) {
	case *hclsyntax.TupleConsExpr:
		n := r.node(kindList, path, line)
		for i, item := range v.Exprs {
			name := strconv.Itoa(i)
			n.members = append(n.members, member{name, r.expression(item, join(path, name))})
		}
		return n
	case *hclsyntax.ObjectConsExpr:
		n := r.node(kindObject, path, line)
		for _, item := range v.Items {
			name := strings.Trim(r.source(item.KeyExpr), `"`)
			n.members = append(n.members, member{name, r.expression(item.ValueExpr, join(path, name))})
		}
		return n
	}
	if value, ok := r.evaluate(e); ok {
		return r.value(value, path, line)
	}
	n := r.node(kindScalar, path, line)
	n.quoted, n.source = true, true
	parts := []hclsyntax.Expression{e}
	switch v := e.(type) {
	case *hclsyntax.TemplateExpr:
		parts = v.Parts
	case *hclsyntax.TemplateWrapExpr:
		parts = []hclsyntax.Expression{v.Wrapped}
	}
	var text strings.Builder
	for _, part := range parts {
		if value, ok := r.evaluate(part); ok && value.Type() == cty.String {
			text.WriteString(value.AsString())
		} else {
			text.WriteString("${" + r.source(part) + "}")
		}
	}
	n.text = text.String()
	return n
}

func (r *hclReader) source(e hclsyntax.Expression) string {
	return string(e.Range().SliceBytes(r.text))
}

// evaluate returns the value of an expression of literals and variables. Loops and functions
// are not evaluated, because a short one can have a huge value.
func (r *hclReader) evaluate(e hclsyntax.Expression) (cty.Value, bool) {
	costly := false
	_ = hclsyntax.VisitAll(e, func(part hclsyntax.Node) hcl.Diagnostics {
		switch part.(type) {
		case *hclsyntax.ForExpr, *hclsyntax.FunctionCallExpr, *hclsyntax.SplatExpr:
			costly = true
		}
		return nil
	})
	if costly {
		return cty.NilVal, false
	}
	value, problems := e.Value(r.scope)
	return value, !problems.HasErrors() && value.IsWhollyKnown()
}

// value converts the value of an expression.
func (r *hclReader) value(v cty.Value, path string, line int) *node {
	n := r.node(kindScalar, path, line)
	switch t := v.Type(); {
	case v.IsNull():
		n.kind = kindNull
	case t == cty.String:
		n.text, n.quoted = v.AsString(), true
	case t == cty.Bool:
		n.text = strconv.FormatBool(v.True())
	case t == cty.Number:
		n.text = v.AsBigFloat().Text('f', -1)
	default:
		n.kind = kindList
		if t.IsObjectType() || t.IsMapType() {
			n.kind = kindObject
		}
		for key, item := range v.Elements() {
			name := strconv.Itoa(len(n.members))
			if n.kind == kindObject {
				name = key.AsString()
			}
			n.members = append(n.members, member{name, r.value(item, join(path, name), line)})
		}
	}
	return n
}
