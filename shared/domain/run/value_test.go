package run_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

func TestTemplates(t *testing.T) {
	t.Parallel()
	values := map[string]string{"a": "1", "b": "{{a}}", "empty": ""}
	value := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	for template, row := range map[string]struct {
		want    string
		unknown []string
	}{
		"":                             {"", nil},
		"plain } }} text":              {"plain } }} text", nil},
		"{{a}}{{ a }}-{{empty}}":       {"11-", nil},
		"{{b}}":                        {"{{a}}", nil},
		"{{{{a}}":                      {"{{a}}", nil},
		"{{{{{{a}}":                    {"{{1", nil},
		"{{c}} {{}} {{ .Names }}{{a}}": {"{{c}} {{}} {{ .Names }}1", []string{"c"}},
		"{{a":                          {"{{a", []string{"a"}},
		"x{{":                          {"x{{", nil},
		"{{a b}}":                      {"{{a b}}", []string{"a b"}},
	} {
		if got, unknown := spec.Expand(template, value); got != row.want || !reflect.DeepEqual(unknown, row.unknown) {
			t.Errorf("%q: got %q and unknown %q, want %q and %q", template, got, unknown, row.want, row.unknown)
		}
	}
	long, _ := spec.Expand(strings.Repeat("{{a}}", 1<<20), func(string) (string, bool) { return strings.Repeat("x", 16<<10), true })
	if len(long) > 512<<10 {
		t.Errorf("got an expansion of %d bytes, want one that stops", len(long))
	}
}

// TestValuesAreData expands any value: it is a part of one argument as it is, and its JSON and its
// text agree.
func TestValuesAreData(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"{{runId}}", "{{", "}}", "\n\"'`$(id)", "<&>\u2028", `\`})).Draw(t, "text"), "")
		r := run.Run{
			ID: "j:1", JobID: "j", Parameters: map[string]string{"GIVEN": "{{runId}}"}, Inputs: map[string]spec.Value{"x": spec.TextValue(text)},
			Work: spec.Work{Program: &spec.Program{
				Command: []string{"{{inputs.x}}", "-{{inputs.x}}-{{inputs.none}}-", "{{unknown}}"},
				Env: map[string]spec.Variable{
					"X": {Value: "{{inputs.x}}"}, "GIVEN": {Value: "{{runId}}"}, "TIME": {Value: "{{scheduledAt}} {{runId}}"}, "KEY": {SecretRef: "{{runId}}"},
				},
			}},
		}
		got := r.Expanded()
		if want := []string{text, "-" + text + "--", "{{unknown}}"}; !reflect.DeepEqual(got.Command, want) {
			t.Fatalf("got command %q, want %q", got.Command, want)
		}
		want := map[string]spec.Variable{"X": {Value: text}, "GIVEN": {Value: "{{runId}}"}, "TIME": {Value: "0001-01-01T00:00:00Z j:1"}, "KEY": {SecretRef: "{{runId}}"}}
		if !reflect.DeepEqual(got.Env, want) {
			t.Fatalf("got variables %q, want %q", got.Env, want)
		}
		encoded, err := json.Marshal(r.Inputs)
		var read map[string]string
		if err != nil || json.Unmarshal(encoded, &read) != nil || read["x"] != text || r.Inputs["x"].Text() != text {
			t.Fatalf("got %s, %v; want the text %q", encoded, err, text)
		}
		if r.JobID = ""; r.Expanded() != r.Work.Program {
			t.Fatal("got an expanded program without a stored job")
		}
	})
}

func TestScheduledTimeOfAProgram(t *testing.T) {
	t.Parallel()
	created := epoch.Add(300 * time.Millisecond)
	fired := run.Run{JobID: "j", CreatedAt: created, ScheduledAt: epoch.Add(-time.Hour), Work: spec.Work{Program: &spec.Program{}}, Constraints: &spec.Constraints{}}
	again := fired.ForRetry()
	again.CreatedAt = epoch.Add(time.Hour)
	third := again.ForRetry()
	for name, row := range map[string]struct {
		r    run.Run
		want time.Time
	}{
		"on request": {run.Run{CreatedAt: created}, epoch}, "a firing": {fired, epoch.Add(-time.Hour)},
		"a retry": {again, epoch.Add(-time.Hour)}, "a retry of a retry": {third, epoch.Add(-time.Hour)},
	} {
		if got := row.r.Scheduled(); !got.Equal(row.want) {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}
