package stack_test

import (
	"net/http"
	"slices"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestFallbackSurvivesAKill kills the process after the platform refused a start and before the
// machine in the fallback pool starts.
func TestFallbackSurvivesAKill(t *testing.T) {
	t.Parallel()
	given := served{Data: t.TempDir(), Play: "success"}
	g := spawn(t, given)
	for _, pool := range [][2]string{
		{"spare", `{"limit": 1}`},
		{"default", `{"runner": "fly", "settings": {"regions": ["qro"]}, "fallback": [{"pool": "spare", "on": ["capacity"]}], "limit": 1}`},
	} {
		if answer := g.Call(http.MethodPut, "/v1/pools/"+pool[0], pool[1]); answer.Status >= http.StatusMultipleChoices {
			t.Fatalf("got %d %s, want the pool %s", answer.Status, answer.Body, pool[0])
		}
	}
	machines, _, err := outside.LocalStack(g.Addresses)
	if err != nil {
		t.Fatal(err)
	}
	if err := machines.SetFaults(t.Context(), faults.Plan{Rules: []faults.Rule{{Kind: faults.Capacity, Region: "qro"}}}); err != nil {
		t.Fatal(err)
	}
	task := g.post(contract.ExportOptions{})
	refused := g.Await(task, func(s contract.Status) bool { return len(s.FellBack) > 0 })
	g.kill(syscall.SIGKILL)
	t.Logf("killed in %s of attempt %d", refused.State, refused.Attempt)

	again := spawn(t, given)
	status := again.End(task)
	if status.State != "Completed" || status.Attempt != 2 || status.Pool != "spare" || len(status.FellBack) != 1 {
		t.Errorf("got %+v, want Completed in attempt 2, in pool spare after one fallback", status)
	} else if f := status.FellBack[0]; f.From != "default" || f.To != "spare" || f.Reason != "capacity" || f.Attempt != 1 || f.Message == "" {
		t.Errorf("got the fallback %+v, want from default to spare for capacity", f)
	}
	count := func(kind string) int {
		return len(slices.DeleteFunc(again.Events(task), func(e contract.TaskEvent) bool { return e.Type != kind }))
	}
	if refused, created := count("job.start_refused"), count("job.machine_created"); refused != 1 || created != 1 {
		t.Errorf("got %d refused starts and %d machines, want one of each", refused, created)
	}
}
