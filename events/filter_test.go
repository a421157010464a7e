package events_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/domain/label"
)

func TestFilterSelects(t *testing.T) {
	t.Parallel()
	run := events.Envelope{EventType: eventtype.Completed, ProjectID: "web", Job: &events.Job{
		ID: "job_1", RunID: "nightly:20260301T080000Z", DefinitionID: "nightly", BatchID: "b-1", Labels: map[string]string{"team": "data"},
	}}
	fired := events.Envelope{EventType: eventtype.ScheduleFired, Schedule: &events.Schedule{DefinitionID: "nightly"}}
	changed := events.Envelope{EventType: eventtype.PolicyUpdated, Policy: &events.Policy{Resource: "job", ID: "nightly"}}
	pool := events.Envelope{EventType: eventtype.PolicyUpdated, Policy: &events.Policy{Resource: "pool", ID: "nightly"}}
	all := []events.Envelope{run, fired, changed, pool}
	child := run
	child.Job = &events.Job{ID: "job_2", RunID: "nightly:20260301T080000Z.0", ParentRunID: run.Job.RunID}
	for parent, want := range map[string][]bool{"": {true, true, true}, run.Job.RunID: {false, true, false}, "other": {false, false, false}, events.NoParent: {true, false, true}} {
		for i, e := range []events.Envelope{run, child, fired} {
			if got := (events.Filter{ParentRunID: parent}).Matches(e); got != want[i] {
				t.Errorf("parent %q: got event %d selected: %v, want %v", parent, i, got, want[i])
			}
		}
	}
	for name, row := range map[string]struct {
		filter events.Filter
		want   []bool
	}{
		"all":                 {events.Filter{}, []bool{true, true, true, true}},
		"type":                {events.Filter{Types: []string{"job.completed"}}, []bool{true, false, false, false}},
		"types":               {events.Filter{Types: []string{"job.failed", "schedule.*", "policy.updated"}}, []bool{false, true, true, true}},
		"prefix of a type":    {events.Filter{Types: []string{"job.comp"}}, []bool{false, false, false, false}},
		"wildcard before":     {events.Filter{Types: []string{"*.completed"}}, []bool{true, false, false, false}},
		"only a wildcard":     {events.Filter{Types: []string{"*"}}, []bool{true, true, true, true}},
		"project":             {events.Filter{ProjectID: "web"}, []bool{true, false, false, false}},
		"another project":     {events.Filter{ProjectID: "we"}, []bool{false, false, false, false}},
		"job":                 {events.Filter{JobID: "nightly"}, []bool{true, true, true, false}},
		"task":                {events.Filter{TaskID: "job_1"}, []bool{true, false, false, false}},
		"run":                 {events.Filter{TaskID: "nightly:20260301T080000Z"}, []bool{true, false, false, false}},
		"batch":               {events.Filter{BatchID: "b-1"}, []bool{true, false, false, false}},
		"batch of another":    {events.Filter{BatchID: "b-1", TaskID: "job_2"}, []bool{false, false, false, false}},
		"each field at once":  {events.Filter{Types: []string{"job.*"}, ProjectID: "web", JobID: "nightly", TaskID: "job_1", BatchID: "b-1"}, []bool{true, false, false, false}},
		"label":               {events.Filter{Label: label.QueryOf("team=data")}, []bool{true, false, false, false}},
		"no label":            {events.Filter{Label: label.QueryOf("!env")}, []bool{true, false, false, false}},
		"another label":       {events.Filter{TaskID: "job_1", Label: label.QueryOf("team!=data")}, []bool{false, false, false, false}},
		"malformed label":     {events.Filter{Label: label.QueryOf("team in (")}, []bool{false, false, false, false}},
		"type does not match": {events.Filter{Types: []string{"job.failed"}, TaskID: "job_1"}, []bool{false, false, false, false}},
	} {
		for i, e := range all {
			if got := row.filter.Matches(e); got != row.want[i] {
				t.Errorf("%s: got %t for %s, want %t", name, got, e.EventType, row.want[i])
			}
		}
	}
}

func TestFilterOfUnknownTypes(t *testing.T) {
	t.Parallel()
	for pattern, ok := range map[string]bool{
		"job.completed": true, "job.*": true, "*": true, "*ed": true, "job.*_*": true,
		"": false, "job": false, "job.complete": false, "orders.*": false, "job.**x": false, "JOB.*": false, "job.completed\n": false,
	} {
		if err := (events.Filter{Types: []string{"job.failed", pattern}}).Check(); (err == nil) != ok {
			t.Errorf("%q: got %v, want it known: %t", pattern, err, ok)
		}
	}
	if err := (events.Filter{Types: make([]string, events.MaxTypes+1)}).Check(); err == nil {
		t.Error("got no error for too many types")
	}
}

// TestWildcardsMatchAsExpressions compares patterns with regular expressions.
func TestWildcardsMatchAsExpressions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab.*]{0,6}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[ab.]{0,8}`).Draw(t, "text")
		expression := "^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + "$"
		want := regexp.MustCompile(expression).MatchString(text)
		if got := (events.Filter{Types: []string{pattern}}).Matches(events.Envelope{EventType: eventtype.Type(text)}); got != want {
			t.Fatalf("%q on %q: got %t, want %t", pattern, text, got, want)
		}
	})
}
