package runs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestInputsWithoutARequest fires a job, whose program gets the defaults and its time, and triggers
// a job that needs a value.
func TestInputsWithoutARequest(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ref := h.createJob("often", "schedule: \"@every 2s\"\ncommand: [\"{{inputs.day}} {{scheduledAt}}\", \"{{runId}}\"]\ninputs: {day: {default: \"{{runId}}\"}}\n")
	h.wake(ref)
	at := epoch.Add(2 * time.Second).Format(time.RFC3339)
	if got := strings.Join(h.runner.last().spec.Command, "|"); got != "{{runId}} "+at+"|"+run.FiringID("often", epoch.Add(2*time.Second)) {
		t.Errorf("got command %q at %s", got, at)
	}
	h.createJob("needs", "inputs: {day: {required: true}}\n")
	child, failure, err := h.service.Triggered(t.Context(), run.Run{Tenant: client.Tenant, ID: "a", State: run.Completed}, spec.Action{Type: spec.ActionTriggerJob, JobID: "needs"}, "key")
	h.ok(err)
	if child != nil || !strings.Contains(failure, "inputs.day: missing value") {
		t.Errorf("got %v and the failure %q, want the missing input", child, failure)
	}
}

// TestRunAtALaterTimeGetsTheNewestInputs changes the job of a run that waits for its time: to a
// definition that the run has values for, and to one that it has not.
func TestRunAtALaterTimeGetsTheNewestInputs(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		"inputs: {day: {}, new: {default: n}}\ncommand: [\"{{inputs.day}}{{inputs.new}}\"]\n": "xn",
		"inputs: {day: {type: date}}\ncommand: [\"{{inputs.day}}!\"]\n":                       "x",
		"inputs: {new: {required: true}}\ncommand: [\"{{inputs.new}}!\"]\n":                   "x",
		"command: [none]\n": "none",
	} {
		h := setup(t)
		ref := h.createJob("later", "inputs: {day: {}}\ncommand: [\"{{inputs.day}}\"]\n")
		_, _, err := h.service.Jobs.RunJob(t.Context(), jobs.RunRequest{
			Identity: client, JobID: "later", ScheduledAt: epoch.Add(time.Minute), Inputs: map[string]spec.Value{"day": `"x"`},
		})
		h.ok(err)
		h.changeJob(ref, func(j job.Job) job.Job {
			d, problems := job.Parse([]byte("id: later\nimage: worker\n"+more), nil)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			return j.Apply(d, "me", h.clock.now)
		})
		h.advance(2 * time.Minute)
		h.step()
		if got := strings.Join(h.runner.last().spec.Command, "|"); got != want {
			t.Errorf("%s: got command %q, want %q", more, got, want)
		}
	}
}
