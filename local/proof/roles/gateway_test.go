package roles

import "testing"

func TestRouteOfAPath(t *testing.T) {
	t.Parallel()
	g := gateway{routes: map[string]string{
		"ANY /v1/runs": "tasks", "POST /v1/runs": "runs", "ANY /v1/runs/{run_id}": "tasks", "ANY /v1/runs/{run_id}/explain": "runs", "ANY /v1/jobs/{proxy+}": "jobs",
		"ANY /v1/tasks/{task_id}": "tasks", "ANY /v1/tasks/none": "other",
	}}
	for call, want := range map[[2]string]string{
		{"GET", "/v1/runs"}: "tasks", {"POST", "/v1/runs"}: "runs", {"GET", "/v1/runs/1"}: "tasks", {"GET", "/v1/runs/1/explain"}: "runs",
		{"GET", "/v1/runs/"}: "", {"GET", "/v1/runs/1/2"}: "", {"GET", "/v1/jobs"}: "", {"GET", "/v1/jobs/1"}: "jobs", {"GET", "/v1/jobs/1/runs/2"}: "jobs",
		{"GET", "/v1/tasks/1"}: "tasks", {"GET", "/v1/tasks/none"}: "other",
	} {
		if got := g.function(call[0], call[1]); got != want {
			t.Errorf("%v: got %q, want %q", call, got, want)
		}
	}
}
