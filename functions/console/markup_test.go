package console

import (
	"bytes"
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

// TestAddressesAreRelative checks that no address leads to another origin or runs a script.
func TestAddressesAreRelative(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"./runs":                     ` href="./runs"`,
		"../../runs?state=a&kind=b":  ` href="../../runs?state=a&amp;kind=b"`,
		"#main":                      ` href="#main"`,
		"?attempt=2#L1":              ` href="?attempt=2#L1"`,
		`./"><script>alert(1)`:       ` href="./%22%3e%3cscript%3ealert%281%29"`,
		"./ü\u202e 100%/%2f":         ` href="./%c3%bc%e2%80%ae%20100%25/%2f"`,
		"javascript:alert(1)":        ` href="#refused"`,
		" javascript:alert(1)":       ` href="#refused"`,
		"data:text/html,<script>":    ` href="#refused"`,
		"//hooks.example.org":        ` href="#refused"`,
		"/console/runs":              ` href="#refused"`,
		"https://hooks.example.org/": ` href="#refused"`,
		"":                           ` href="#refused"`,
	} {
		if got := rendered(t, relative("href", address)); got != want {
			t.Errorf("%q: got %s, want %s", address, got, want)
		}
	}
	if got, want := queryValue("a b&c=d#e+f/ü"), "a%20b%26c%3Dd%23e%2Bf%2F%C3%BC"; got != want {
		t.Errorf("got query value %s, want %s", got, want)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	found := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
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
			case (function == "Attr" || function == "attr" || function == "flag") && (slices.Contains(uncheckedAttributes, first) || strings.HasPrefix(first, "on")):
				t.Errorf("%s: got the attribute %s, want relative(%q, ...) for an address and a module for a script", set.Position(call.Pos()), first, first)
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
		if x, ok := f.X.(*ast.Ident); ok && (x.Name == "gomponents" || x.Name == "html") {
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
	text := rendered(t, lineageOf(nodes, started).content(&layout{Root: "../"}))
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

func TestUseOfTokensByHour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 9, 30, 0, 0, time.UTC)
	task := func(ago time.Duration, in, out int) contract.Task {
		return contract.Task{CreatedAt: now.Add(-ago), Inference: &contract.InferenceDetails{TokensIn: &in, TokensOut: &out}}
	}
	tasks := []contract.Task{task(0, 1, 2), task(20*time.Minute, 10, 20), task(40*time.Minute, 100, 200), task(23*time.Hour, 4, 4), task(25*time.Hour, 9, 9)}
	text := rendered(t, usageOf(tasks, true, now).content(&layout{Root: "../", Now: now}))
	for _, want := range []string{"09:00 to 10:00 UTC: 33 tokens of 2 tasks", "08:00 to 09:00 UTC: 300 tokens of 1 tasks", "10:00 to 11:00 UTC: 8 tokens", "at most 300 in an hour</span>"} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in %s", want, text)
		}
	}
	limit := int64(1000)
	u := usageOf(tasks[:3], true, now)
	u.spend(contract.Budget{Limit: contract.BudgetLimit{Tokens: &limit}, Spent: contract.BudgetUse{Tokens: 500}}, tasks[2].CreatedAt)
	if h := u.Hours; h[23].Spent != 500 || h[22].Spent != 467 || h[21].Spent != -1 || u.Limit != 1000 {
		t.Errorf("got %+v, want the budget of the last two hours", h[20:])
	}
	if text := rendered(t, u.line()); !strings.Contains(text, `points="900,43 940,40"`) {
		t.Errorf("got the line %s", text)
	}
	if u := usageOf(tasks[:4], true, now); !u.Partial {
		t.Error("got the use of all tasks, want that there are more")
	}
	if u := usageOf(tasks[4:], false, now); u != nil {
		t.Errorf("got %+v without a task of the last day", u)
	}
}

func TestJobHasItsFigures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	run := func(state string, took time.Duration) contract.JobResult {
		return contract.JobResult{State: state, StartedAt: now.Add(-took), EndedAt: now}
	}
	row := jobRow{JobSummary: contract.JobSummary{ID: "job"}, Results: resultsOf([]contract.JobResult{run("Completed", 20*time.Second), run("Completed", 70*time.Second), run("Failed", time.Hour)}, now)}
	text := rendered(t, row.row(&layout{Root: "./", Now: now}, false))
	for _, want := range []string{"2 of 3", "p95 1 min 10 s", "newest first: Completed, Completed, Failed"} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in %s", want, text)
		}
	}
}

// benchmarked returns pages with much content.
func benchmarked() (*layout, map[string]markup) {
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	l := &layout{
		Title: "Benchmark", Root: "../", Form: "token", Page: "runs", Now: now, Live: true, JSON: "/v1/runs", Command: "sortie runs",
		Reader: &reader{Name: "owner", Subject: "token/1", Tenant: "acme", Project: "main", Until: now}, may: func(access.Scope) bool { return true },
	}
	for _, p := range pages {
		l.Nav = append(l.Nav, navItem{Label: p.label, Path: p.path})
	}
	list := runsData{First: true, Presets: runPresets(nil)}
	row := contract.Task{
		State: "Completed", JobID: "nightly-report", Trigger: "schedule", Attempt: 1, CreatedAt: now.Add(-time.Hour), StartedAt: now.Add(-time.Minute), EndedAt: now,
		Program: &contract.Program{Image: "registry.example.org/report:1"}, Fault: &contract.Fault{Code: "PROGRAM_EXIT", Message: "the program ended with exit code 1"},
	}
	jobs := jobsData{Shows: runPresets(nil)}
	var history []contract.JobResult
	for n := range 50 {
		row.RunID = fmt.Sprintf("nightly-report:202611%02dT020000Z", n)
		list.Runs, history = append(list.Runs, rowOf(row, now)), append(history, resultOf(row))
	}
	for n := range 50 {
		jobs.Jobs = append(jobs.Jobs, jobRow{
			JobSummary: contract.JobSummary{ID: fmt.Sprintf("job-%d", n), Schedule: "30 2 * * *", TimeZone: "Europe/Berlin", JobState: contract.JobState{NextAt: now}},
			What:       "registry.example.org/report:1", State: stateOf("Completed", false), Words: "every day at 2:30", Local: "Sun 29 Nov 02:30", Results: resultsOf(history[:30], now),
		})
	}
	one := runData{runRow: rowOf(row, now), Ended: true, Attempts: []int{1}, Log: &logView{Attempt: 1, Ended: true}}
	for range logLines {
		one.Log.add(contract.LogLine{Attempt: 1, Stream: "stdout", Data: []byte("2026-11-28T08:00:00Z \x1b[32mINFO\x1b[0m stored 128 records\n")})
	}
	return l, map[string]markup{"runs": list.content, "jobs": jobs.content, "run": one.content}
}

func BenchmarkPages(b *testing.B) {
	l, pages := benchmarked()
	for _, name := range []string{"runs", "jobs", "run"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				size = len(rendered(b, l.document(pages[name](l))))
			}
			b.ReportMetric(float64(size), "B/page")
		})
	}
}
