package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// TestExplanationIsShown explains a run and a job, and plans runs, as text and as JSON.
func TestExplanationIsShown(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route {
		return append(jobs.Routes(s.Jobs, s.Queries, s.Explanations), runs.Routes(s.Definitions, s.Explanations)...)
	})
	env := map[string]string{"SORTIE_URL": stage.URL}
	show := func(want string, args ...string) {
		t.Helper()
		got := sortie(t, env, "", args...)
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%v: got %d %s%s, want %q in it", args, got.code, got.stdout, got.stderr, want)
		}
	}
	show("created nightly", "jobs", "apply", "-f", written(t, jobFile))
	show("next_firing", "jobs", "explain", "nightly")
	show("starts_now", "jobs", "run", "nightly", "--plan")
	show("0 of 1 slots of the job are held", "jobs", "run", "nightly", "--plan")
	show("starts_now", "run", "app", "--plan")
	id := strings.TrimSpace(sortie(t, env, "", "jobs", "run", "nightly").stdout)
	show("admission_due", "explain", id)
	show("Paused", "jobs", "pause", "nightly")
	show("resume job nightly", "jobs", "explain", "nightly")
	var x contract.Explanation
	if got := sortie(t, env, "", "explain", id, "--json"); json.Unmarshal([]byte(got.stdout), &x) != nil || x.RunID != id {
		t.Errorf("got %s, want the explanation of %s in JSON", got.stdout, id)
	}
	if got := sortie(t, env, "", "explain", "unknown"); got.code == 0 {
		t.Errorf("got %s for an unknown run, want an error", got.stdout)
	}
}
