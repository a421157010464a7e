package prometheus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/prometheus"
	"github.com/sortie-dev/sortie/shared/domain/forecast"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

var pools = func(context.Context) ([]series.Sample, error) {
	labels := []string{"default", "default"}
	return []series.Sample{
		{Name: series.PoolHeld, Value: 3, Labels: labels}, {Name: series.PoolQueued, Value: 5, Labels: labels}, {Name: series.PoolLimit, Value: 16, Labels: labels},
	}, nil
}

// commits returns the commits of a firing from its creation to its end. Each counter
// changes at least once.
func commits(t *testing.T) (all []run.Decision) {
	t.Helper()
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	d := run.New(run.Run{
		ID: "nightly:1", JobID: "nightly", Trigger: run.TriggerSchedule, ScheduledAt: now.Add(-time.Second), FiredAt: now,
		Work: spec.Work{Kind: spec.KindJob, Program: &spec.Program{}}, Labels: map[string]string{"team": "data", "env": "dev"}, Policy: spec.Policy{Retry: spec.Retry{MaxAttempts: 1}},
	}, now)
	all = append(all, d)
	d.Run.Tally = run.Tally{Checked: 2, Acted: 1, ActFailed: 1, Heartbeats: 9, Calls: map[string]int{platform.RunnerKubernetes: 7}}
	d.Run.Violations = []spec.ConstraintViolation{{Constraint: spec.PreRunHook}}
	for i, f := range []run.Fact{
		run.Admitted{Pool: "p", Limit: 1, Prediction: &forecast.Prediction{P50: 1000, P90: 2000}}, run.MachineRunning{Attempt: 1}, run.MachineGone{Attempt: 1, Exit: &run.Exit{Code: 1}}, run.Settled{},
	} {
		now = now.Add(time.Duration(i+1) * time.Second)
		var err error
		if d, err = run.Decide(d.Run, f, now); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

func TestTextPassesTheLinter(t *testing.T) {
	t.Parallel()
	r := prometheus.New(pools, series.NewLabels([]string{"team"}))
	for _, d := range commits(t) {
		r.Committed(t.Context(), d.Run, d.Events)
	}
	for _, f := range series.Families() {
		if !f.OneHost && !strings.Contains(f.Name, "_stream_") && !strings.Contains(f.Name, "_relay_") && !strings.Contains(f.Name, "_webhook") || f.Kind == series.Gauge {
			continue
		}
		labels := make([]string, len(f.Labels))
		for i, label := range f.Labels {
			labels[i] = "x"
			if values := series.LabelValues(f.Name, label); values != nil {
				labels[i] = values[0]
			}
		}
		r.Record(t.Context(), series.Sample{Name: f.Name, Value: 2, Labels: labels})
	}
	text, err := r.Text(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	problems, err := porttest.LintMetrics(text)
	if err != nil || len(problems) > 0 {
		t.Errorf("got problems %v (%v), want none, in\n%s", problems, err, text)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range series.Families() {
		family := families[f.Name]
		if family == nil || !strings.EqualFold(family.GetType().String(), string(f.Kind)) {
			if !strings.Contains(f.Name, "_pre_run_") && !strings.Contains(f.Name, "_check_") && !strings.Contains(f.Name, "_action_") &&
				!strings.Contains(f.Name, "_delay_") && f.Name != series.Retries && f.Kind != series.Gauge {
				t.Errorf("got %v for %s, want a %s", family, f.Name, f.Kind)
			}
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.Contains(l.GetValue(), "nightly") {
					t.Errorf("got label %s=%q of %s, want no run and no job", l.GetName(), l.GetValue(), f.Name)
				}
			}
		}
	}
	for _, line := range []string{
		`sortie_runs_total{kind="job",skipped="false",state="Failed"} 1`,
		`sortie_runs_by_label_total{kind="job",label="team",state="Failed",value="data"} 1`,
		`sortie_run_execution_seconds_sum{kind="job"} 3`,
		`sortie_run_execution_seconds_count{kind="job"} 1`,
		`sortie_run_heartbeats_total{kind="job"} 9`,
		`sortie_run_platform_api_calls_total{kind="job",runner="kubernetes"} 7`,
		`sortie_schedule_firings_total{result="fired"} 1`,
		`sortie_pool_slots_held{pool="default",tenant="default"} 3`,
		`sortie_pool_runs_queued{pool="default",tenant="default"} 5`,
		`sortie_pool_slots_limit{pool="default",tenant="default"} 16`,
		`sortie_stream_readers_ended_total{reason="lifetime",transport="sse"} 2`,
		`sortie_webhook_attempt_seconds_sum 2`,
		`sortie_relay_events_total 2`,
	} {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("got no line %s in\n%s", line, text)
		}
	}
}

// TestWithoutRunsTheGaugesAreThere reads a registry without commits, as functions serve it.
func TestWithoutRunsTheGaugesAreThere(t *testing.T) {
	t.Parallel()
	text, err := prometheus.New(pools, nil).Text(t.Context())
	if err != nil || !strings.Contains(string(text), "sortie_pool_slots_limit") || strings.Contains(string(text), "sortie_run") {
		t.Errorf("got %s (%v), want the gauges alone", text, err)
	}
	failed := errors.New("no store")
	_, err = prometheus.New(func(context.Context) ([]series.Sample, error) { return nil, failed }, nil).Text(t.Context())
	if !errors.Is(err, failed) {
		t.Errorf("got %v, want the store's error", err)
	}
}
