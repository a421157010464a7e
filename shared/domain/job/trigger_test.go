package job_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// TestTriggerParameters reads the variables of a triggered run, and their problems.
func TestTriggerParameters(t *testing.T) {
	t.Parallel()
	const before = "id: a\nimage: b\n"
	for name, row := range map[string]struct {
		document, field string
		unprocessable   bool
	}{
		"texts":                {"actions: {onFailure: {type: trigger_job, parameters: {jobId: c, parameters: {A: x, B: ''}}}}", "", false},
		"output":               {"output: {path: o}\nactions: {onSuccess: {type: trigger_job, parameters: {jobId: c, parameters: {A: {fromOutput: true}}}}}", "", false},
		"number":               {"actions: {onFailure: {type: trigger_job, parameters: {jobId: c, parameters: {A: 1}}}}", "actions.onFailure.parameters.parameters.A", false},
		"list":                 {"actions: {onFailure: {type: trigger_job, parameters: {jobId: c, parameters: [A]}}}", "actions.onFailure.parameters.parameters", false},
		"other source":         {"output: {path: o}\nactions: {onSuccess: {type: trigger_job, parameters: {jobId: c, parameters: {A: {fromLog: true}}}}}", "actions.onSuccess.parameters.parameters.A", false},
		"no output wanted":     {"output: {path: o}\nactions: {onSuccess: {type: trigger_job, parameters: {jobId: c, parameters: {A: {fromOutput: false}}}}}", "actions.onSuccess.parameters.parameters.A", false},
		"reserved name":        {"actions: {onFailure: {type: trigger_job, parameters: {jobId: c, parameters: {SORTIE_X: x}}}}", "actions.onFailure.parameters.parameters.SORTIE_X", false},
		"malformed name":       {"actions: {onFailure: {type: trigger_job, parameters: {jobId: c, parameters: {'1': x}}}}", "actions.onFailure.parameters.parameters.1", false},
		"of a webhook":         {"actions: {onFailure: {type: webhook, parameters: {url: 'https://example.org/', parameters: {A: x}}}}", "actions.onFailure.parameters.parameters", false},
		"job without output":   {"actions: {onSuccess: {type: trigger_job, parameters: {jobId: c, parameters: {A: {fromOutput: true}}}}}", "actions.onSuccess.parameters.parameters.A.fromOutput", true},
		"run that has failed":  {"output: {path: o}\nactions: {onFailure: {type: trigger_job, parameters: {jobId: c, parameters: {A: {fromOutput: true}}}}}", "actions.onFailure.parameters.parameters.A.fromOutput", true},
		"run that was skipped": {"output: {path: o}\nactions: {onSkip: {type: trigger_job, parameters: {jobId: c, parameters: {A: {fromOutput: true}}}}}", "actions.onSkip.parameters.parameters.A.fromOutput", true},
		"object of another":    {"actions: {onFailure: {type: trigger_job, parameters: {jobId: {a: b}}}}", "actions.onFailure.parameters.jobId", false},
	} {
		d, problems := job.Parse([]byte(before+row.document+"\n"), deployment())
		if row.field == "" {
			if len(problems) > 0 {
				t.Errorf("%s: got %v, want a definition", name, problems)
			}
			continue
		}
		if len(problems) != 1 || problems[0].Field != row.field || problems[0].Unprocessable != row.unprocessable || problems[0].Line < 3 {
			t.Errorf("%s: got %v of %+v, want one problem of %s", name, problems, d.Actions, row.field)
		}
	}
	d, problems := job.Parse([]byte(before+"output: {path: o}\nactions: {onSuccess: {type: trigger_job, parameters: {jobId: c, parameters: {A: x, B: {fromOutput: true}}}}}\n"), deployment())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var stored job.Definition
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	want := map[string]spec.TriggerParameter{"A": {Text: "x"}, "B": {FromOutput: true}}
	for _, each := range []job.Definition{d, stored} {
		r := each.Run(deployment().Policy)
		if got := r.Actions.OnSuccess.Parameters; !maps.Equal(got, want) || !r.PassesOutput() {
			t.Errorf("got the parameters %v, want %v and an output that is passed on", got, want)
		}
	}
}
