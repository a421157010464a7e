package scenario_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/scenario"
)

// scenarioOf returns a scenario of one job with more lines.
func scenarioOf(job, more string) string {
	return "start: \"2027-03-01\"\ndays: 2\njobs:\n  - job: {id: a, image: a" + job + "}\n    duration: {fixed: 1m}\n" + more
}

func TestRubbishIsRefusedWithLineAndField(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "want a scenario: an object",
		"days: [":                              "scenario.yaml:",
		"starts: x":                            "scenario.yaml:1: starts: unknown field, did you mean start?",
		"start: 1":                             "scenario.yaml:1: start: 1, want a string",
		"days: 93":                             "scenario.yaml:1: days: 93 is out of range, want 1 to 92",
		"start: March":                         `scenario.yaml:1: start: malformed time "March", want a date`,
		"kubernetes: {}":                       "scenario.yaml:1: kubernetes: Kubernetes: not modelled",
		"inference: {}":                        "inference: inference: not modelled",
		scenarioOf("", "    lost: 2\n"):        "scenario.yaml:6: jobs.0.lost: 2 is out of range, want a share from 0 to 1",
		scenarioOf("", "    arrivals: many\n"): "jobs.0.arrivals: malformed rate \"many\", want a number",
		scenarioOf("", "    arrivals: -3/hour\n"):                                                         "jobs.0.arrivals: malformed rate",
		scenarioOf("", "    fails: {share: 0.1, code: 300}\n"):                                            "jobs.0.fails.code: 300 is out of range",
		scenarioOf("", "    file: a.yaml\n"):                                                              "jobs.0: want either file",
		scenarioOf("", "  - file: missing.yaml\n    duration: {fixed: 1m}"):                               "jobs.1.file: no such file",
		scenarioOf("", "  - job: {id: a, image: b}\n    duration: {fixed: 1m}"):                           "is the id of jobs.0 too",
		scenarioOf("", "  - job: {id: b, image: b}\n    duration: {median: 2m, p95: 1m}"):                 "1m is less than the median",
		scenarioOf("", "  - job: {id: b, image: b}\n"):                                                    "jobs.1.duration: missing",
		scenarioOf(", schedule: noon", ""):                                                                "jobs.0.job.schedule",
		scenarioOf(", pool: gpu", ""):                                                                     "jobs.0.job.pool: several pools: not modelled",
		scenarioOf(", podSpec: {containers: []}", ""):                                                     "Kubernetes: not modelled",
		scenarioOf(", constraints: {preRunHook: {url: \"https://example.org/\"}}", ""):                    "webhooks as conditions: not modelled",
		scenarioOf("", "faults:\n  - {type: meteor}\n"):                                                   `faults.0.type: "meteor" is not modelled, want one of outage`,
		scenarioOf("", "faults:\n  - {type: outage}\n"):                                                   "faults.0: want at and for",
		scenarioOf("", "faults:\n  - {type: lost_callbacks}\n"):                                           "faults.0.share: missing",
		scenarioOf("", "faults:\n  - {type: outage, at: \"2026-01-01T00:00:00Z\", for: 1m}\n"):            "faults.0.at: malformed time",
		scenarioOf("", "faults:\n  - {type: clock_jump, at: \"2027-03-01T00:00:00Z\", for: 1h, by: 99h}"): "faults.0.by: malformed duration",
		scenarioOf("", "prices:\n  - {cpus: 0, memoryMB: 256, perSecond: 1}\n"):                           "prices.0: malformed price",
		scenarioOf("", "limits: {machines: -1}\n"):                                                        "limits.machines: -1 is out of range",
	} {
		_, err := scenario.Read("scenario.yaml", []byte(text), noFiles)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want %s", text, err, want)
		}
	}
}

func TestOnlySomeFieldsCanBeSet(t *testing.T) {
	t.Parallel()
	s := read(t, scenario.Sample)
	for setting, want := range map[string]string{
		"limits":             "want FIELD=VALUE",
		"limits.machines=x":  "malformed value",
		"limits.machines=-2": "out of range",
		"jobs.0.lost=1":      "cannot be set, want one of days",
	} {
		if _, err := s.With([]string{setting}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", setting, err, want)
		}
	}
}

func TestPageHasPicturesAndNoScripts(t *testing.T) {
	t.Parallel()
	ten := play(t, twoJobs)
	ten.Scenario = "<script>alert(1)</script>"
	var text bytes.Buffer
	if err := scenario.Page(&text, ten, play(t, twoJobs, "limits.machines=2")); err != nil {
		t.Fatal(err)
	}
	page := text.String()
	if strings.Count(page, "<svg") != 4 || strings.Contains(page, "<script") || strings.Contains(page, "src=") || !strings.Contains(page, "limits.machines=2") {
		t.Errorf("got %s", page)
	}
}
