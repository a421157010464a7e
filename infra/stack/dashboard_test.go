package stack_test

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
)

var (
	searched  = regexp.MustCompile(`^SEARCH\('\{Sortie,([a-z,]+)\} MetricName="(\w+)" stage="(\w+)"', '(Sum|Maximum|SampleCount|Average|p90|p99)', 300\)$`)
	inQueries = regexp.MustCompile(`sortie_\w+|job\.\w+`)
)

// TestDashboardHasMetricsOfTheCode compares the metrics of the dashboard, and the names in the
// saved queries, with those that the functions write.
func TestDashboardHasMetricsOfTheCode(t *testing.T) {
	t.Parallel()
	labels := map[string]string{}
	for _, f := range series.Families() {
		labels[f.Name] = strings.Join(append([]string{"stage"}, f.Labels...), ",")
	}
	made := deployed(t)
	dashboards := made.Of("CloudWatch::Dashboard")
	if len(dashboards) != 1 {
		t.Fatalf("got %d dashboards, want 1", len(dashboards))
	}
	var body struct {
		Widgets []struct {
			Properties struct {
				Metrics [][]struct{ Expression string }
			}
		}
	}
	if err := json.Unmarshal([]byte(dashboards[0].Text("DashboardBody")), &body); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, w := range body.Widgets {
		for _, m := range w.Properties.Metrics {
			parts := searched.FindStringSubmatch(m[0].Expression)
			if parts == nil {
				t.Errorf("got expression %s, want a search", m[0].Expression)
				continue
			}
			name := parts[2]
			shown[name] = true
			if want, ours := labels[name]; ours && want != parts[1] {
				t.Errorf("%s: got dimensions %s, want %s", name, parts[1], want)
			} else if !ours && !written(t, name) {
				t.Errorf("%s: no code writes this metric", name)
			}
		}
	}
	for _, f := range series.Families() {
		if f.OneHost {
			continue
		}
		if (f.Kind != series.Gauge || f.Name == series.RelayLag) && !shown[f.Name] {
			t.Errorf("%s is not on the dashboard", f.Name)
		}
	}
	queries := made.Of("Logs::QueryDefinition")
	if len(queries) == 0 {
		t.Error("got no saved queries")
	}
	for _, q := range queries {
		if groups, _ := q.At("LogGroupNames").([]any); len(groups) != len(made.Of("Lambda::Function")) {
			t.Errorf("got %d log groups of %s, want those of all functions", len(groups), q.Text("Name"))
		}
		for _, name := range inQueries.FindAllString(q.Text("QueryString"), -1) {
			_, ours := labels[name]
			if types := []run.EventType{run.EventFailed, run.EventOrphaned, run.EventConstraintViolated, run.EventActionFailed}; !ours && !slices.Contains(types, run.EventType(name)) {
				t.Errorf("%s: unknown name %s", q.Text("Name"), name)
			}
		}
	}
}

// written reports whether the code of a function contains the name of a metric.
func written(t *testing.T, name string) bool {
	t.Helper()
	return exec.CommandContext(t.Context(), "git", "grep", "-q", `"`+name+`"`, "--", "../../functions/*.go", "../../shared/wire/lambdakit/*.go").Run() == nil
}
