// Package series defines the metrics of Sortie: their names, labels and label values. It derives
// the samples of a commit. GET /metrics and CloudWatch use the same names. No label contains the
// id of a run or of a job, so the number of series is bounded.
package series

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Kind is the type of a metric.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
	Gauge     Kind = "gauge"
)

// The names of the metrics of runs, schedules and pools. Phase returns those of phases.
const (
	Runs         = "sortie_runs_total"
	RunTotal     = "sortie_run_total_seconds"
	StartLatency = "sortie_run_start_latency_seconds"
	Transitions  = "sortie_run_state_transitions_total"
	Checked      = "sortie_run_constraints_checked_total"
	Violated     = "sortie_run_constraints_violated_total"
	Acted        = "sortie_run_actions_executed_total"
	ActFailed    = "sortie_run_actions_failed_total"
	Retries      = "sortie_run_retries_total"
	Heartbeats   = "sortie_run_heartbeats_total"
	APICalls     = "sortie_run_platform_api_calls_total"
	// PredictionError is the time from the predicted p50 of a start to the start, negative if
	// the start was earlier. The label covered says whether the start was within the p90.
	PredictionError = "sortie_run_start_prediction_error_seconds"
	Firings         = "sortie_schedule_firings_total"
	Lateness        = "sortie_schedule_lateness_seconds"
	PoolHeld        = "sortie_pool_slots_held"
	PoolQueued      = "sortie_pool_runs_queued"
	PoolLimit       = "sortie_pool_slots_limit"
)

// The values of the label result of Firings.
const (
	Fired   = "fired"
	Skipped = "skipped"
)

// Family declares a metric.
type Family struct {
	Name, Help string
	Kind       Kind
	Labels     []string
	// OneHost: only GET /metrics of a local system has this metric.
	OneHost bool
}

// Families returns all metrics.
func Families() []Family {
	kind, pool := []string{"kind"}, []string{"tenant", "pool"}
	families := []Family{
		{Name: Runs, Help: "Runs that have ended.", Kind: Counter, Labels: []string{"kind", "state", "skipped"}},
		{Name: RunsByLabel, Help: "Runs that have ended, by each of their labels that SORTIE_METRIC_LABELS lists.", Kind: Counter, Labels: []string{"label", "value", "kind", "state"}},
		{Name: RunTotal, Help: "Time from the creation of a run to its end.", Kind: Histogram, Labels: kind},
		{Name: StartLatency, Help: "Time from the request of the last machine of a run to its start.", Kind: Histogram, Labels: kind},
		{Name: Transitions, Help: "State transitions of ended runs.", Kind: Counter, Labels: kind},
		{Name: Checked, Help: "Constraints that were evaluated for ended runs.", Kind: Counter, Labels: kind},
		{Name: Violated, Help: "Constraints that ended runs violated.", Kind: Counter, Labels: kind},
		{Name: Acted, Help: "Actions before the end of ended runs.", Kind: Counter, Labels: kind},
		{Name: ActFailed, Help: "Actions that failed before the end of ended runs.", Kind: Counter, Labels: kind},
		{Name: Retries, Help: "Attempts after the first one of ended runs.", Kind: Counter, Labels: kind},
		{Name: Heartbeats, Help: "Heartbeats that were received for ended runs.", Kind: Counter, Labels: kind},
		{Name: APICalls, Help: "Calls to the platforms of machines for ended runs, by the runner.", Kind: Counter, Labels: []string{"kind", "runner"}},
		{Name: PredictionError, Help: "Time from the p50 of a predicted start to the start, negative if it was earlier, by whether the p90 covered it.", Kind: Histogram, Labels: []string{"kind", "covered"}},
		{Name: Firings, Help: "Firings of schedules, by whether they created a run or were skipped.", Kind: Counter, Labels: []string{"result"}},
		{Name: Lateness, Help: "Time from a firing's time to its commit, catch-up runs left out.", Kind: Histogram, Labels: nil},
		{Name: PoolHeld, Help: "Slots of a pool that runs hold. A pool without a limit counts none.", Kind: Gauge, Labels: pool},
		{Name: PoolQueued, Help: "Runs in the queue of a pool.", Kind: Gauge, Labels: pool},
		{Name: PoolLimit, Help: "Slots of a pool; 0 is no limit.", Kind: Gauge, Labels: pool},
	}
	for _, p := range run.Phases() {
		families = append(families, Family{Name: Phase(p), Help: "Time of a run in the phase " + string(p) + ".", Kind: Histogram, Labels: kind})
	}
	return slices.Concat(families, eventFamilies(), taskFamilies())
}

// Phase returns the name of the metric of a phase, such as "sortie_run_pre_run_seconds".
func Phase(p run.Phase) string {
	var name strings.Builder
	for _, c := range string(p) {
		if unicode.IsUpper(c) {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToLower(c))
	}
	return "sortie_run_" + name.String() + "_seconds"
}

// Sample is an increment of a counter, an observation of a histogram or a value of a gauge.
type Sample struct {
	Name  string
	Value float64
	// Labels are the values of the family's labels, in the order of Family.Labels.
	Labels []string
}

// OfCommit returns the samples of a commit. There are samples for the end of a run, for the
// firing of a schedule, for a start that was predicted, and for changes of an inference task. r
// is the record after the commit.
func OfCommit(r run.Run, events []run.Event) (samples []Sample) {
	add := func(name string, value float64, labels ...string) {
		samples = append(samples, Sample{name, value, labels})
	}
	for _, e := range events {
		m, ended := r.EndMetrics(e)
		if ended {
			ofEnd(r, m, add)
		}
		if r.Work.Inference != nil {
			ofTask(r, e, ended, add)
		}
		if late, covered, ok := r.StartError(e); ok {
			add(PredictionError, late.Seconds(), r.Work.Kind, strconv.FormatBool(covered))
		}
		if scheduled := r.Trigger == run.TriggerSchedule || r.Trigger == run.TriggerCatchUp; e.Seq != 1 || !scheduled {
			continue
		}
		if r.Missed != nil {
			add(Firings, float64(r.Missed.Count), Skipped)
			continue
		}
		add(Firings, 1, Fired)
		if r.Trigger == run.TriggerSchedule {
			add(Lateness, r.FiredAt.Sub(r.ScheduledAt).Seconds())
		}
	}
	return samples
}

func ofEnd(r run.Run, m run.Metrics, add func(name string, value float64, labels ...string)) {
	kind := r.Work.Kind
	add(Runs, 1, kind, string(m.State), strconv.FormatBool(m.Skipped))
	if r.Missed != nil {
		return // r is the record of missed firings, not a run
	}
	add(RunTotal, m.Total.Seconds(), kind)
	for _, phase := range run.Phases() {
		if took, was := m.Phases[phase]; was {
			add(Phase(phase), took.Seconds(), kind)
		}
	}
	if !r.Attempt.StartedAt.IsZero() {
		add(StartLatency, m.StartLatency.Seconds(), kind)
	}
	for _, c := range []struct {
		name string
		n    int
	}{
		{Transitions, m.StateTransitions},
		{Checked, m.ConstraintsChecked},
		{Violated, m.ConstraintsViolated},
		{Acted, m.ActionsExecuted},
		{ActFailed, m.ActionsFailed},
		{Retries, m.RetryAttempt},
		{Heartbeats, m.Heartbeats},
	} {
		if c.n > 0 {
			add(c.name, float64(c.n), kind)
		}
	}
	for _, runner := range slices.Sorted(maps.Keys(m.Calls)) {
		add(APICalls, float64(m.Calls[runner]), kind, runner)
	}
}
