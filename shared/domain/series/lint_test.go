package series_test

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/domain/series"
)

var rewrite = flag.Bool("rewrite", false, "write the file with the metrics")

// linted is an entry of metrics.lint.json, the published list of metrics.
type linted struct {
	Name   string      `json:"name"`
	Type   series.Kind `json:"type"`
	Labels []string    `json:"labels,omitempty"`
}

// TestMetricsAreThoseOfTheirFile checks that the metrics match metrics.lint.json, and that no
// label is unbounded. Renaming a metric or changing its labels breaks users' dashboards and
// alarms.
func TestMetricsAreThoseOfTheirFile(t *testing.T) {
	t.Parallel()
	const file = "metrics.lint.json"
	var have, want []linted
	for _, f := range series.Families() {
		have = append(have, linted{f.Name, f.Kind, f.Labels})
	}
	if *rewrite {
		text, err := json.MarshalIndent(have, "", "  ")
		if err == nil {
			err = os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // a document that everybody may read
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("want -, got +; \"go test ./shared/domain/series -run File -args -rewrite\" accepts new metrics\n%s", diff)
	}
	for _, f := range have {
		for _, label := range f.Labels {
			if slices.Contains([]string{"run", "run_id", "task_id", "job", "job_id", "session_id", "correlation_id"}, label) {
				t.Errorf("%s has the label %s, whose values have no bound", f.Name, label)
			}
		}
	}
}
