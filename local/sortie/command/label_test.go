package command_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestLabelsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		return slices.Concat(jobs.Routes(s.Jobs, s.Queries, s.Explanations),
			tasks.Routes(s.Queries, s.Runs, s.Logs, tasks.Keys{Tokens: parts.Signer, Events: fake.NewEventKeys(nil)}, ""))
	})
	env := map[string]string{"SORTIE_URL": stage.URL}
	call := func(code int, want string, args ...string) string {
		t.Helper()
		got := sortie(t, env, "", args...)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, want) {
			t.Fatalf("%v: got %+v, want %q and exit code %d", args, got, want, code)
		}
		return strings.TrimSpace(got.stdout)
	}
	call(0, "created nightly", "jobs", "apply", "-f", written(t, jobFile+"labels: {team: data, env: dev}\n"))
	call(0, "env=dev,team=data", "jobs", "list", "-l", "team=data,env!=prod")
	call(0, "No jobs", "jobs", "list", "-l", "team=web")
	call(2, "label", "jobs", "list", "-l", "team in (")
	run := call(0, "nightly", "jobs", "run", "nightly", "--label", "env=prod", "--label", "owner=ana", "--at", "2026-01-02T04:00:00Z")
	call(2, "want NAME=VALUE", "jobs", "run", "nightly", "--label", "env")
	call(0, "owner=ana,team=data,triage=open", "label", run, "env-", "triage=open")
	call(2, "KEY=VALUE, or KEY- to remove it", "label", run, "env")
	call(2, "", "label", run)
	if got := label.Text(stage.Run(t, run).Labels); got != "owner=ana,team=data,triage=open" {
		t.Errorf("got labels %s", got)
	}
	call(0, "owner=ana,team=data,triage=open", "runs", "-l", "triage=open", "--format", "wide")
	call(0, "selected", "runs", "label", "triage=done", "-l", "triage", "--dry-run", "--state", "PreRun")
	call(0, "changed", "runs", "label", "triage=done", "owner-", "-l", "triage", "--state", "PreRun")
	call(0, "unchanged", "runs", "label", "triage=done", "-l", "triage", "--state", "PreRun")
	call(2, "missing --job", "runs", "label", "triage=done")
	call(2, "", "runs", "label", "-l", "triage")
	call(0, "cancelled", "cancel", run)
	again := call(0, "", "retry", run, "--label", "try=2", "--label", "team-")
	if got := label.Text(stage.Run(t, again).Labels); got != "triage=done,try=2" {
		t.Errorf("got a retry with the labels %s, want the changed ones", got)
	}
	if got := call(0, "", "runs", "-l", "try=2", "--json"); !strings.Contains(got, `"triage": "done"`) {
		t.Errorf("got %s, want the labels", got)
	}
}
