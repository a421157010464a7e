package stack_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/infra/stack"
	"github.com/sortie-dev/sortie/local/sortie/template"
)

var rewrite = flag.Bool("rewrite", false, "write the summary and the documents")

// TestSummaryIsFresh compares a summary for reviewers with the template: resources, limits and
// permissions. Rewrite it with: go test ./stack -run Fresh -rewrite.
func TestSummaryIsFresh(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, part := range []struct {
		title string
		made  template.Template
	}{{"The defaults", deployed(t)}, {"With every option", everything(t)}} {
		fmt.Fprintf(&text, "# %s\n\n%s\n", part.title, summary(t, part.made))
	}
	name := filepath.Join("testdata", "summary.txt")
	if *rewrite {
		if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), text.String()); diff != "" {
		t.Errorf("%s is old; read the difference, then rewrite it with -rewrite:\n%s", name, diff)
	}
}

// summary returns a summary of a template.
func summary(t *testing.T, made template.Template) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("## Resources\n\n")
	counts := map[string]int{}
	for _, r := range made.Resources {
		counts[strings.TrimPrefix(r.Type, "AWS::")]++
	}
	for _, kind := range sortedKeys(counts) {
		fmt.Fprintf(&text, "%3d %s\n", counts[kind], kind)
	}
	text.WriteString("\n## Functions\n\n")
	for _, name := range functionsOf(made) {
		f := functionOf(t, made, name)
		variables, _ := f.At("Environment", "Variables").(map[string]any)
		fmt.Fprintf(&text, "%s: %s MB, %s s", name, f.Text("MemorySize"), f.Text("Timeout"))
		if reserved := f.Text("ReservedConcurrentExecutions"); reserved != "" {
			fmt.Fprintf(&text, ", %s calls reserved", reserved)
		}
		fmt.Fprintf(&text, "\n    %s\n", strings.Join(sortedKeys(variables), " "))
	}
	text.WriteString("\n## Permissions\n\n")
	where := ""
	for _, s := range statements(made) {
		if s.where != where {
			where = s.where
			fmt.Fprintf(&text, "%s\n", readable(where))
		}
		fmt.Fprintf(&text, "    %s\n", strings.Join(s.actions, " "))
		for _, on := range s.resources {
			fmt.Fprintf(&text, "        %s\n", readable(on))
		}
	}
	text.WriteString("\n## The API\n\n")
	behind := methods(t, made)
	for _, method := range slices.SortedFunc(slices.Values(sortedKeys(behind)), byPath) {
		text.WriteString(strings.TrimRight(fmt.Sprintf("%-42s %s", method, behind[method]), " ") + "\n")
	}
	text.WriteString("\n## Alarms\n\n")
	for _, a := range made.Of("CloudWatch::Alarm") {
		metrics := a.Text("MetricName")
		if metrics == "" {
			metrics = fmt.Sprintf("%d metrics", strings.Count(a.Text("Metrics"), `"MetricStat"`))
		}
		fmt.Fprintf(&text, "%s: %s, %s %s, %s x 5 min\n", a.Text("AlarmName"), metrics, a.Text("ComparisonOperator"), a.Text("Threshold"), a.Text("EvaluationPeriods"))
	}
	text.WriteString("\n## Outputs\n\n")
	for _, name := range sortedKeys(made.Outputs) {
		fmt.Fprintf(&text, "%s = %s\n", name, readable(template.Flat(made.Outputs[name].Value)))
	}
	return text.String()
}

func byPath(a, b string) int {
	methodA, pathA, _ := strings.Cut(a, " ")
	methodB, pathB, _ := strings.Cut(b, " ")
	return slices.Compare([]string{pathA, methodA}, []string{pathB, methodB})
}

var suffix = regexp.MustCompile(`([A-Za-z0-9])[0-9A-F]{8}\b`)

// readable removes the hashes that the CDK appends to names.
func readable(name string) string { return suffix.ReplaceAllString(name, "$1") }

func TestTemplateIsDeterministic(t *testing.T) {
	t.Parallel()
	if again := made(t, given(nil)); again.Text != deployed(t).Text {
		t.Errorf("second template (-first +second):\n%s", cmp.Diff(deployed(t).Text, again.Text))
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	t.Parallel()
	settings, err := stack.ReadSettings(given(nil))
	if err != nil {
		t.Fatal(err)
	}
	settings.Build = t.TempDir()
	_, err = stack.New(nil, "", settings)
	if err == nil {
		t.Fatal("got no error for missing programs")
	}
	for _, name := range stack.Programs() {
		if !strings.Contains(err.Error(), name+" is not built for arm64") {
			t.Errorf("got %v, want %s in it", err, name)
		}
	}
}

// TestDocumentsAreFresh compares the generated tables of README.md. Rewrite them with: go test
// ./stack -run Fresh -rewrite.
func TestDocumentsAreFresh(t *testing.T) {
	t.Parallel()
	name := filepath.Join("..", "README.md")
	document, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	fresh := document
	for part, text := range map[string]string{"settings": settingsList(), "alarms": alarmsList(t)} {
		begin, end := []byte("<!-- generated: "+part+" -->\n"), []byte("<!-- end -->")
		head, rest, found := bytes.Cut(fresh, begin)
		_, tail, closed := bytes.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s: got no generated part %q", name, part)
		}
		fresh = slices.Concat(head, begin, []byte(text), end, tail)
	}
	if *rewrite {
		if err := os.WriteFile(name, fresh, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(fresh, document) {
		t.Errorf("%s is old; rewrite it with -rewrite", name)
	}
}

// settingsList returns a Markdown list of the settings with their defaults.
func settingsList() string {
	var text strings.Builder
	for _, s := range stack.Documented() {
		name := s.Name
		if s.Default != "" {
			name += "=" + s.Default
		}
		fmt.Fprintf(&text, "- `%s`: %s\n", name, s.Meaning)
	}
	return text.String()
}

// alarmsList returns a Markdown list of the alarms.
func alarmsList(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, a := range deployed(t).Of("CloudWatch::Alarm") {
		meaning, todo, _ := strings.Cut(a.Text("AlarmDescription"), ". What to do: ")
		fmt.Fprintf(&text, "- **%s**: %s. What to do: %s.\n", strings.TrimPrefix(a.ID, "Alarm"), meaning, strings.TrimSuffix(todo, "."))
	}
	return text.String()
}
