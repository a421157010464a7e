package stack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	emf "github.com/sortie-dev/sortie/shared/wire/lambdakit/metric"
)

// panel is a graph of the dashboard. A search selects its series, so it shows all existing
// ones.
type panel struct {
	title string
	// names are metrics of package series. If labels is nil, they are metrics of the functions.
	names     []string
	labels    []string
	statistic string
}

// panels returns the graphs of the dashboard, two in a row.
func panels() []panel {
	var phases []string
	for _, p := range run.Phases() {
		phases = append(phases, series.Phase(p))
	}
	kind, function := []string{"stage", "kind"}, []string{"function", "stage"}
	covered := append(slices.Clone(kind), "covered")
	return []panel{
		{"Runs that ended", []string{series.Runs}, []string{"stage", "kind", "state", "skipped"}, "Sum"},
		{"Runs that ended, by listed labels", []string{series.RunsByLabel}, []string{"stage", "label", "value", "kind", "state"}, "Sum"},
		{"Duration of runs (p90)", []string{series.RunTotal, series.StartLatency}, kind, "p90"},
		{"Phases of runs (p90)", phases, kind, "p90"},
		{"Predicted starts, by whether the p90 covered them", []string{series.PredictionError}, covered, "SampleCount"},
		{"Error of predicted starts (average)", []string{series.PredictionError}, covered, "Average"}, // no percentile: values can be negative
		{"Retries, constraints and actions", []string{series.Retries, series.Checked, series.Violated, series.Acted, series.ActFailed}, kind, "Sum"},
		{"Calls of the platforms' APIs", []string{series.APICalls}, []string{"stage", "kind", "runner"}, "Sum"},
		{"Firings", []string{series.Firings}, []string{"stage", "result"}, "Sum"},
		{"Lateness of firings (p99)", []string{series.Lateness}, []string{"stage"}, "p99"},
		{"Heartbeats and transitions", []string{series.Heartbeats, series.Transitions}, kind, "Sum"},
		{"Events in their streams", []string{series.RelayEvents}, []string{"stage"}, "Sum"},
		{"Age of the oldest event that the bus or the webhooks have not got", []string{series.RelayLag}, []string{"stage", "target"}, "Maximum"},
		{"Events sent to readers, and readers over the limit", []string{series.EventsSent, series.ReadersRefused}, []string{"stage", "transport"}, "Sum"},
		{"Streams of readers that ended", []string{series.ReadersEnded}, []string{"stage", "transport", "reason"}, "Sum"},
		{"Attempts to deliver to webhooks", []string{series.Attempts}, []string{"stage", "outcome"}, "Sum"},
		{"Time of attempts to deliver to webhooks (p90)", []string{series.AttemptLatency}, []string{"stage"}, "p90"},
		{"Webhooks whose receiver fails", []string{series.Halts}, []string{"stage", "reason"}, "Sum"},
		{"Failures of events", []string{"RelayFailures", "RelaySetAside", "BusFailures", "DispatchFailures", "DeliverFailures", "PushFailures", "TracesDropped"}, function, "Sum"},
		{"Faults", []string{"Faults"}, append(function, "code"), "Sum"},
	}
}

// search returns the expression that finds the series of a metric in the stage.
func (p panel) search(name, stage string) string {
	return fmt.Sprintf(`SEARCH('{%s,%s} MetricName="%s" stage="%s"', '%s', %d)`,
		emf.Namespace, strings.Join(p.labels, ","), name, stage, p.statistic, fiveMinutes)
}

// dashboardBody returns the dashboard as CloudWatch's JSON.
func dashboardBody(stage, region string) (string, error) {
	const width, height = 12, 6
	var widgets []any
	for i, p := range panels() {
		var found []any
		for _, name := range p.names {
			found = append(found, []any{map[string]string{"expression": p.search(name, stage)}})
		}
		widgets = append(widgets, map[string]any{
			"type": "metric", "x": i % 2 * width, "y": i / 2 * height, "width": width, "height": height,
			"properties": map[string]any{"title": p.title, "region": region, "view": "timeSeries", "period": fiveMinutes, "metrics": found},
		})
	}
	text, err := json.Marshal(map[string]any{"widgets": widgets})
	if err != nil {
		return "", fmt.Errorf("cannot encode the dashboard: %w", err)
	}
	return string(text), nil
}

// query is a saved query of CloudWatch Logs Insights over the logs of all functions.
type query struct{ name, text string }

// queries returns the saved queries.
func queries() []query {
	return []query{
		{"life-of-a-run", `fields @timestamp, msg, state, attempt, message, fault, error
| filter run_id = "RUN" or task_id = "RUN"
| sort @timestamp asc`},
		{"runs-that-failed", fmt.Sprintf(`fields @timestamp, job_id, run_id, task_id, fault, message
| filter msg in ["%s", "%s"]
| sort @timestamp desc`, run.EventFailed, run.EventOrphaned)},
		{"violated-constraints", fmt.Sprintf(`fields @timestamp, job_id, scheduled_at, run_id, message
| filter msg = "%s"
| sort @timestamp desc`, run.EventConstraintViolated)},
		{"failed-actions", fmt.Sprintf(`fields @timestamp, job_id, run_id, message
| filter msg = "%s"
| sort @timestamp desc`, run.EventActionFailed)},
		{"duration-of-runs", fmt.Sprintf(`filter ispresent(%[1]s)
| stats count(*) as runs, pct(%[1]s, 50) as p50, pct(%[1]s, 90) as p90, max(%[1]s) as longest by kind, state, bin(1h)`, series.RunTotal)},
		{"errors", `fields @timestamp, function, msg, error, run_id, request_id
| filter level = "ERROR"
| sort @timestamp desc`},
	}
}

// addDashboard adds the dashboard and the saved queries. LocalStack supports neither.
func (b *builder) addDashboard() error {
	if b.settings.LocalStack != "" {
		return nil
	}
	body, err := dashboardBody(b.settings.Stage, *b.stack.Region())
	if err != nil {
		return err
	}
	awscloudwatch.NewCfnDashboard(b.stack, jsii.String("Dashboard"), &awscloudwatch.CfnDashboardProps{
		DashboardName: jsii.String(b.name("runs")), DashboardBody: jsii.String(body),
	})
	var groups []any
	for _, logs := range b.logs {
		groups = append(groups, logs.Ref())
	}
	for _, q := range queries() {
		awslogs.NewCfnQueryDefinition(b.stack, jsii.String("Query"+strings.ReplaceAll(q.name, "-", "")), &awslogs.CfnQueryDefinitionProps{
			Name: jsii.String(b.name("queries") + "/" + q.name), QueryString: jsii.String(q.text), LogGroupNames: &groups,
		})
	}
	return nil
}
