package suite

import (
	"path/filepath"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func workers() []Test {
	return []Test{
		{Name: "lost worker is retried up to three attempts", Requires: []Capability{ScriptedWorkers}, Run: lostThreeTimes},
		{Name: "second attempt can succeed", Requires: []Capability{ScriptedWorkers}, Run: secondAttempt},
		{Name: "attempt ends at its time limit", Requires: []Capability{ScriptedWorkers}, Run: timeLimit},
		{
			Name: "lost exit event counts as a lost worker", Requires: []Capability{ScriptedWorkers, Faults},
			Faults: map[string][]faults.Rule{"one": {{Kind: faults.LostExit}}}, Run: lostExit,
		},
	}
}

// tries returns a policy with at most n attempts.
func tries(n int) contract.Policy {
	return contract.Policy{Retry: &contract.RetryPolicy{MaxAttempts: &n}}
}

func lostThreeTimes(c *Case) {
	task := c.StartScripted("one", "exit:3", tries(3))
	status := c.End(task)
	if status.Status != contract.StatusError || status.ErrorCode != "WORKER_LOST" || status.Attempt != 3 ||
		!strings.Contains(status.Error, "code 3") {
		c.T.Errorf("got %+v, want WORKER_LOST with exit code 3 in attempt 3", status)
	}
	const want = "attempt_ended:WORKER_LOST retry_scheduled:WORKER_LOST attempt_ended:WORKER_LOST retry_scheduled:WORKER_LOST " +
		"attempt_ended:WORKER_LOST failed:WORKER_LOST"
	if got := c.Faults(task); got != want {
		c.T.Errorf("got fault events %q, want %q", got, want)
	}
}

func secondAttempt(c *Case) {
	mark := filepath.Join(c.T.TempDir(), "mark")
	status := c.End(c.StartScripted("one", "once:"+mark+" exit:1 success"))
	if status.Status != contract.StatusSuccess || status.Attempt != 2 {
		c.T.Errorf("got %+v, want success in attempt 2", status)
	}
}

func timeLimit(c *Case) {
	policy := tries(1)
	policy.TimeLimitSeconds = new(3)
	policy.CancelGraceSeconds = new(1)
	status := c.End(c.StartScripted("one", "deaf wait:"+scripts.Pipe(c.T), policy))
	if status.ErrorCode != "RUN_TIMEOUT" || status.ErrorCategory != "TIMEOUT" || status.Attempt != 1 {
		c.T.Errorf("got %+v, want RUN_TIMEOUT in attempt 1", status)
	}
	c.Events(status.TaskID)
}

func lostExit(c *Case) {
	hold, mark := scripts.Pipe(c.T), filepath.Join(c.T.TempDir(), "mark")
	task := c.StartScripted("one", "wait:"+hold+" once:"+mark+" exit:3 success")
	c.Running(task)
	scripts.Release(c.T, hold)
	if status := c.End(task); status.State != "Completed" || status.Attempt != 2 {
		c.T.Errorf("got %+v, want Completed in attempt 2", status)
	}
	if got := c.Faults(task); got != "attempt_ended:WORKER_LOST retry_scheduled:WORKER_LOST" {
		c.T.Errorf("got fault events %q, want one lost worker", got)
	}
	for _, e := range c.Events(task) {
		if e.Exit != nil {
			c.T.Errorf("got the exit of a lost exit event: %+v", e)
		}
	}
}
