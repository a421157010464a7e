//go:build kubernetes

package kubernetes_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestConstraintsOnACluster runs jobs with constraints, retries and limits as pods.
func TestConstraintsOnACluster(t *testing.T) {
	t.Parallel()
	c, admin := cluster(t)
	s := serve(t, c, admin)
	if got := s.Call(http.MethodPut, "/v1/pools/narrow", `{"limit": 1, "runner": "kubernetes"}`); got.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want a new pool", got.Status, got.Body)
	}
	dir := folder(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	const once = `, "retryConfig": {"maxRetries": 0}`
	s.define("alone", shell, until(file("alone"), 0), once+`, "constraints": {"maxConcurrentRuns": 1}`)
	s.define("waits", shell, until(file("waits"), 0), once+`, "constraints": {"maxConcurrentRuns": 1}, "actions": {"onConstraintViolation": {"type": "wait"}}`)
	s.define("chained", shell, "exit 3", once+`, "constraints": {"requirePreviousSuccess": true}`)
	s.define("flaky", shell, "[ -e "+file("flaky")+" ] && exit 0; touch "+file("flaky")+"; exit 9",
		`, "retryConfig": {"maxRetries": 2, "initialDelay": "1s"}, "exitCodes": {"retry": [9]}`)

	alone, waits, chained, flaky := s.run("alone"), s.run("waits"), s.run("chained"), s.run("flaky")
	s.Running(alone)
	s.Running(waits)
	skipped, next := s.run("alone"), s.run("waits")
	task := func(id string) contract.Task { return outside.Get[contract.Task](s.Client, "/v1/tasks/"+id) }
	if s.End(skipped); !task(skipped).Skipped {
		t.Errorf("got %+v, want a second run at once skipped", task(skipped))
	}
	if got := task(next); got.State == "Running" || got.Machine != nil {
		t.Errorf("got %+v, want a run that waits for the first", got)
	}
	for _, name := range []string{"alone", "waits"} {
		s.ok(os.WriteFile(file(name), nil, 0o600))
	}
	for _, id := range []string{alone, waits, next, flaky} {
		if got := s.End(id); got.State != "Completed" {
			t.Errorf("got %+v, want a success", got)
		}
	}
	s.wantAfter(task(waits), task(next))
	if got := task(flaky); got.Attempt != 2 {
		t.Errorf("got attempt %d, want the second one", got.Attempt)
	}
	if got := s.End(chained); got.State != "Failed" {
		t.Errorf("got %+v, want a failure", got)
	}
	after := s.run("chained")
	if s.End(after); !task(after).Skipped {
		t.Errorf("got %+v, want a run after a failure skipped", task(after))
	}

	document := `{"image": "` + shell + `", "command": ["` + until(file("narrow"), 0) + `"], "pool": "narrow"}`
	if got := s.Call(http.MethodPut, "/v1/jobs/narrow", document); got.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want a new job", got.Status, got.Body)
	}
	one := s.run("narrow")
	s.Running(one)
	two := s.run("narrow")
	if got := s.Call(http.MethodGet, "/v1/runs/"+two+"/explain", ""); !strings.Contains(string(got.Body), `"pool_full"`) && !strings.Contains(string(got.Body), `"admission_due"`) {
		t.Errorf("got %s, want a run that waits for the pool", got.Body)
	}
	s.ok(os.WriteFile(file("narrow"), nil, 0o600))
	for _, id := range []string{one, two} {
		if got := s.End(id); got.State != "Completed" {
			t.Errorf("got %+v, want a success", got)
		}
	}
	s.wantAfter(task(one), task(two))
}

// wantAfter checks that the second run started after the first had ended.
func (s *system) wantAfter(first, second contract.Task) {
	s.T.Helper()
	if second.StartedAt.Before(first.EndedAt) {
		s.T.Errorf("got a start at %s before the end of the first at %s", second.StartedAt, first.EndedAt)
	}
}
