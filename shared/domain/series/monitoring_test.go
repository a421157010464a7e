package series_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
)

// The parts of a query in PromQL that name series and labels.
var (
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	window   = regexp.MustCompile(`\[[^\]]*\]`)
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\}|\()?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	operator = []string{"and", "or", "unless", "bool"}
)

// mistakes returns what a query says about metrics that Families does not. Prometheus itself has
// the series up and the labels job and instance.
func mistakes(query string) (list []string) {
	var grouped []string
	for _, match := range grouping.FindAllStringSubmatch(query, -1) {
		grouped = append(grouped, strings.FieldsFunc(match[1], func(r rune) bool { return r == ' ' || r == ',' })...)
	}
	known, found := []string{"job", "instance"}, false
	for _, match := range selector.FindAllStringSubmatch(window.ReplaceAllString(grouping.ReplaceAllString(query, " "), ""), -1) {
		name := match[1]
		if match[2] == "(" || slices.Contains(operator, name) {
			continue
		}
		found = true
		family, labels := familyOf(name)
		if labels == nil {
			list = append(list, "no series "+name)
		}
		known = append(known, labels...)
		for _, label := range matcher.FindAllStringSubmatch(match[2], -1) {
			if values := valuesOf(family, label[1]); !slices.Contains(append(labels, "job"), label[1]) || values != nil && !slices.Contains(values, label[2]) {
				list = append(list, name+" has no "+label[0])
			}
		}
	}
	for _, label := range grouped {
		if !slices.Contains(known, label) {
			list = append(list, "no label "+label)
		}
	}
	if !found {
		list = append(list, "no series at all")
	}
	return list
}

// familyOf returns the family of a series and its labels, or nil labels for an unknown series.
func familyOf(name string) (family string, labels []string) {
	if name == "up" {
		return name, []string{"job"}
	}
	for _, f := range series.Families() {
		if f.Kind != series.Histogram && f.Name == name {
			return f.Name, append([]string{"instance"}, f.Labels...)
		}
		if part, ok := strings.CutPrefix(name, f.Name); f.Kind == series.Histogram && ok && slices.Contains([]string{"_bucket", "_sum", "_count"}, part) {
			return f.Name, append([]string{"le"}, f.Labels...)
		}
	}
	return "", nil
}

func valuesOf(family, label string) []string {
	if family == series.Runs && label == "state" {
		var states []string
		for _, s := range run.States() {
			states = append(states, string(s))
		}
		return states
	}
	return series.LabelValues(family, label)
}

// TestDashboardAndAlertsNameSeriesThatExist checks each query of the dashboard and of the alert
// rules. "make validate" parses and runs the rules with promtool.
func TestDashboardAndAlertsNameSeriesThatExist(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
			}
		}
	}
	samples, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, into := range map[string]any{"dashboard.json": &dashboard, "alerts.yaml": &rules} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		decode := yaml.Unmarshal
		if strings.HasSuffix(name, ".json") {
			decode = json.Unmarshal
		}
		if err := decode(text, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	queries := 0
	check := func(where, query string) {
		queries++
		for _, mistake := range mistakes(query) {
			t.Errorf("%s: got %s in %s", where, mistake, query)
		}
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			check(p.Title, target.Expr)
		}
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			check(r.Alert, r.Expr)
			if !strings.Contains(string(samples), `alertname="`+r.Alert+`"`) {
				t.Errorf("%s: testdata/alerts.yaml has no samples that fire it", r.Alert)
			}
		}
	}
	if queries < 40 {
		t.Errorf("got %d queries, want those of the dashboard and of the rules", queries)
	}
}

// TestQueryMistakesAreFound checks the check.
func TestQueryMistakesAreFound(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`sum by (kind) (rate(sortie_runs_total{state="Failed"}[5m]))`:      "",
		`up{job="sortie"} == 0 and sortie_webhooks > 1`:                    "",
		`rate(sortie_run_total[5m])`:                                       "no series sortie_run_total",
		`sortie_run_total_seconds`:                                         "no series sortie_run_total_seconds",
		`sortie_runs_total_bucket`:                                         "no series sortie_runs_total_bucket",
		`sortie_runs_total{state="Fialed"}`:                                `sortie_runs_total has no state="Fialed"`,
		`sortie_runs_total{job_id="x"}`:                                    `sortie_runs_total has no job_id="x"`,
		`sum by (pool) (sortie_runs_total)`:                                "no label pool",
		`histogram_quantile(0.9, sum by (le) (rate(sortie_webhooks[5m])))`: "no label le",
		`vector(1)`: "no series at all",
	} {
		if got := strings.Join(mistakes(query), ", "); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}
