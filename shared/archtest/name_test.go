package archtest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/steps"
	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/base/setting/local"
	"github.com/sortie-dev/sortie/shared/base/setting/otel"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/statemachines"
)

var rewrite = flag.Bool("rewrite", false, "write the generated parts of the documents")

// TestStateMachineCallsTheStepFunctions checks that the functions of the state machine, such
// as ${Launch}, are those of functions/steps in lower case, such as launch. No step function
// may be missing or unused.
func TestStateMachineCallsTheStepFunctions(t *testing.T) {
	t.Parallel()
	var called []string
	for _, name := range statemachines.Functions() {
		called = append(called, strings.ToLower(name))
	}
	if got := steps.Functions(); !slices.Equal(got, called) {
		t.Errorf("got step functions %q, want those of the state machine: %q", got, called)
	}
}

// TestTheStateMachineKnowsTheStepsOfTheCore checks that each step of the core is a state with
// the same name, that each state except Route is a step, and that Route leads to each step.
func TestTheStateMachineKnowsTheStepsOfTheCore(t *testing.T) {
	t.Parallel()
	functions := map[string]string{}
	for _, name := range statemachines.Functions() {
		functions[name] = strings.ToLower(name)
	}
	text, err := statemachines.Run(functions)
	if err != nil {
		t.Fatal(err)
	}
	var machine struct {
		StartAt string
		States  map[string]struct {
			Type    string
			Choices []struct {
				StringEquals, Next string
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &machine); err != nil {
		t.Fatal(err)
	}
	for _, step := range run.Steps() {
		if _, ok := machine.States[string(step)]; !ok {
			t.Errorf("step %s is no state", step)
		}
	}
	for name := range machine.States {
		if name != "Route" && !slices.Contains(run.Steps(), run.Step(name)) {
			t.Errorf("state %s is no step", name)
		}
	}
	routed := []string{string(run.StepReconciling)} // the default of Route
	for _, c := range machine.States["Route"].Choices {
		if c.StringEquals != c.Next {
			t.Errorf("Route leads %s to %s", c.StringEquals, c.Next)
		}
		routed = append(routed, c.Next)
	}
	for _, step := range run.Steps() {
		if !slices.Contains(routed, string(step)) {
			t.Errorf("Route does not lead to %s", step)
		}
	}
}

// TestStatesAreDescribed checks that the list in statemachines/README.md has exactly the
// states of the state machine.
func TestStatesAreDescribed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root(t), "statemachines", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "## The states of the execution\n\n")
	list, _, closed := strings.Cut(list, "\n\n")
	if !found || !closed {
		t.Fatal("got no list of states")
	}
	want := []string{"Route"}
	for _, step := range run.Steps() {
		want = append(want, string(step))
	}
	var got []string
	for row := range strings.SplitSeq(list, "\n") {
		if names, _, starts := strings.Cut(strings.TrimPrefix(row, "- "), " ("); starts && strings.HasPrefix(row, "- ") {
			got = append(got, strings.Split(names, ", ")...)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDocumentsAreFresh checks that the generated parts of the documents match the code.
// With -rewrite ("make generate") it writes them.
func TestDocumentsAreFresh(t *testing.T) {
	t.Parallel()
	for _, part := range []struct{ file, name, text string }{
		{"statemachines/README.md", "life of a run", diagram()},
		{"shared/README.md", "change paths", changePaths(t)},
		{"local/README.md", "settings", settingsList(append(service.Settings(), local.DiskSettings()...))},
		{"shared/adapter/kubernetes/README.md", "settings", settingsList(local.ClusterSettings())},
		{"shared/domain/series/README.md", "series", seriesList()},
		{"shared/domain/series/README.md", "trace settings", settingsList(otel.Settings())},
		{"shared/sdk/go/worker/README.md", "examples/go/main.go", goBlock(t, "shared/sdk/go/worker/examples/go/main.go")},
		{"shared/sdk/go/README.md", "examples/run/main.go", goBlock(t, "shared/sdk/go/examples/run/main.go")},
	} {
		name := filepath.Join(root(t), filepath.FromSlash(part.file))
		document, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		begin, end := "<!-- generated: "+part.name+" -->\n", "<!-- end -->"
		head, rest, found := strings.Cut(string(document), begin)
		_, tail, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Errorf("%s has no generated part %q", part.file, part.name)
			continue
		}
		fresh := head + begin + part.text + end + tail
		if fresh == string(document) {
			continue
		}
		if !*rewrite {
			t.Errorf("%s: the part %q is old; write it with: make generate", part.file, part.name)
			continue
		}
		if err := os.WriteFile(name, []byte(fresh), 0o644); err != nil { //nolint:gosec // a document that everybody may read
			t.Error(err)
		}
	}
}

// seriesList returns Markdown lists of the metrics, one for each kind. The metrics of phases are
// one item.
func seriesList() string {
	var text strings.Builder
	var phases []string
	for _, p := range run.Phases() {
		phases = append(phases, strings.TrimSuffix(strings.TrimPrefix(series.Phase(p), "sortie_run_"), "_seconds"))
	}
	for _, group := range []struct {
		kind series.Kind
		head string
	}{{series.Counter, "Counters"}, {series.Gauge, "Gauges"}, {series.Histogram, "Histograms"}} {
		text.WriteString(group.head + ", with their labels in braces:\n\n")
		for _, f := range series.Families() {
			if f.Kind != group.kind || strings.HasPrefix(f.Help, "Time of a run in the phase ") {
				continue
			}
			labels := ""
			if len(f.Labels) > 0 {
				labels = " {" + strings.Join(f.Labels, ", ") + "}"
			}
			fmt.Fprintf(&text, "- `%s`%s: %s\n", f.Name, labels, f.Help)
		}
		if group.kind == series.Histogram {
			fmt.Fprintf(&text, "- `sortie_run_PHASE_seconds` {kind}: Time of a run in a phase: `%s`.\n", strings.Join(phases, "`, `"))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// goBlock returns a fenced Markdown block with the content of a Go file.
func goBlock(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return "```go\n" + string(text) + "```\n"
}

func diagram() string {
	var text strings.Builder
	text.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> PreRun\n    [*] --> Pending\n")
	for _, from := range run.States() {
		for _, to := range from.Next() {
			if to != run.Cancelled && to != run.Failed {
				fmt.Fprintf(&text, "    %s --> %s\n", from, to)
			}
		}
	}
	text.WriteString("    Terminating --> Failed\n    Terminating --> Cancelled\n")
	for _, end := range run.States() {
		if end.Terminal() {
			fmt.Fprintf(&text, "    %s --> [*]\n", end)
		}
	}
	text.WriteString("```\n")
	return text.String()
}

// settingsList returns a Markdown list of the settings with their defaults.
func settingsList(settings []setting.Setting) string {
	var text strings.Builder
	for _, s := range settings {
		name := s.Name
		if s.Default != "" {
			name += "=" + s.Default
		}
		fmt.Fprintf(&text, "- `%s`: %s\n", name, s.Meaning)
	}
	return text.String()
}
