package console

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"maragu.dev/gomponents"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func rendered(t testing.TB, node gomponents.Node) string {
	t.Helper()
	var text bytes.Buffer
	if err := node.Render(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// unchecked are the functions of gomponents that write text as it is, or an address, a style or a
// script without a check, and the names of attributes that browsers read as one of these.
var (
	unchecked = []string{
		"Raw", "Rawf", "Href", "Src", "SrcSet", "Action", "FormAction", "CiteAttr", "Poster", "Style", "StyleAttr", "StyleEl", "Script", "IFrame", "Object", "Embed", "Base",
	}
	uncheckedAttributes = []string{"href", "src", "srcset", "action", "formaction", "cite", "poster", "data", "style", "srcdoc", "xlink:href", "background", "ping"}
)

// TestMarkupIsEscaped checks that the pages have no markup, style, script or address that is not
// checked.
func TestMarkupIsEscaped(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	below, errBelow := filepath.Glob("*/*.go")
	if err := errors.Join(err, errBelow); err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	found := 0
	for _, name := range slices.Concat(names, below) {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "docs/") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return strings.HasPrefix(i.Path.Value, `"maragu.dev/gomponents`) }) {
			continue
		}
		found++
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			function := calledName(call)
			first := firstText(call)
			switch {
			case slices.Contains(unchecked, function):
				t.Errorf("%s: got a call of %s, want one that escapes", set.Position(call.Pos()), function)
			case (function == "Attr" || function == "Attribute" || function == "Flag") && (slices.Contains(uncheckedAttributes, first) || strings.HasPrefix(first, "on")):
				t.Errorf("%s: got the attribute %s, want ui.Relative(%q, ...) for an address and a module for a script", set.Position(call.Pos()), first, first)
			}
			return true
		})
	}
	if found < 10 {
		t.Errorf("got %d files with markup, want those of all pages", found)
	}
}

// calledName returns the name of a called function without its package or receiver.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && (x.Name == "gomponents" || x.Name == "html" || x.Name == "ui") {
			return f.Sel.Name
		}
	}
	return ""
}

// firstText returns the first argument of a call, if it is a literal string.
func firstText(call *ast.CallExpr) string {
	if len(call.Args) == 0 {
		return ""
	}
	if text, ok := call.Args[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
		return strings.Trim(text.Value, "\"`")
	}
	return ""
}

func TestLineageIsDrawn(t *testing.T) {
	t.Parallel()
	bad := `"><script>alert(1)</script>`
	nodes := []lineageNode{{RunID: "b", What: bad}, {RunID: bad, What: bad + "\u202e", Relation: "triggered the next one"}}
	started := slices.Repeat([]contract.JobRunRef{{JobID: "job", RunID: "c"}}, startedShown+3)
	text := rendered(t, lineageOf(nodes, started).content(&ui.Layout{Root: "../"}))
	for _, want := range []string{"3 further runs", `viewBox="0 0 610 404"`, `href="../runs/%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E"`, `href="../runs/c"`, "triggered by this run"} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "<script") || strings.Contains(text, "\u202e") || strings.Count(text, "<path") != startedShown+1 {
		t.Errorf("got markup of a text, or other edges, in %s", text)
	}
	if lineageOf(nodes[:1], nil) != nil {
		t.Error("got a picture of a run alone")
	}
}

// benchmarked returns pages with much content.
func benchmarked() (*ui.Layout, map[string]ui.Markup) {
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	l := &ui.Layout{
		Title: "Benchmark", Root: "../", Form: "token", Page: "runs", Now: now, Live: true, JSON: "/v1/runs", Command: "sortie runs",
		Reader: &ui.Reader{Name: "owner", Subject: "token/1", Tenant: "acme", Project: "main", Until: now}, Permits: func(access.Scope) bool { return true },
	}
	for _, p := range pages {
		l.Nav = append(l.Nav, ui.NavItem{Label: p.Label, Path: p.Path})
	}
	list := runsData{First: true, Presets: runPresets(nil)}
	row := contract.Task{
		State: "Completed", JobID: "nightly-report", Trigger: "schedule", Attempt: 1, CreatedAt: now.Add(-time.Hour), StartedAt: now.Add(-time.Minute), EndedAt: now,
		Program: &contract.Program{Image: "registry.example.org/report:1"}, Fault: &contract.Fault{Code: "PROGRAM_EXIT", Message: "the program ended with exit code 1"},
	}
	for n := range 50 {
		row.RunID = fmt.Sprintf("nightly-report:202611%02dT020000Z", n)
		list.Runs = append(list.Runs, page.RowOf(row, now))
	}
	one := runData{RunRow: page.RowOf(row, now), Ended: true, Attempts: []int{1}, Log: &logView{Attempt: 1, Ended: true}}
	for range logLines {
		one.Log.add(contract.LogLine{Attempt: 1, Stream: "stdout", Data: []byte("2026-11-28T08:00:00Z \x1b[32mINFO\x1b[0m stored 128 records\n")})
	}
	return l, map[string]ui.Markup{"runs": list.content, "run": one.content}
}

func BenchmarkPages(b *testing.B) {
	l, pages := benchmarked()
	for _, name := range []string{"runs", "run"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				size = len(rendered(b, l.Document(pages[name](l))))
			}
			b.ReportMetric(float64(size), "B/page")
		})
	}
}
