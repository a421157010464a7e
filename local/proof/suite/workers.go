package suite

import (
	"path/filepath"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/contract"
)

func workers() []Test {
	return []Test{
		{Name: "a lost worker is tried again three times", Needs: []Capability{Plays}, Run: lostThrice},
		{Name: "a second attempt can succeed", Needs: []Capability{Plays}, Run: secondAttempt},
		{Name: "an attempt has its time limit", Needs: []Capability{Plays}, Run: timeLimit},
		{
			Name: "a lost exit is a lost worker", Needs: []Capability{Plays, Faults},
			Faults: map[string][]faults.Rule{"one": {{Kind: faults.LostExit}}}, Run: lostExit,
		},
	}
}

// tries is a policy of so many attempts.
func tries(n int) contract.Policy {
	return contract.Policy{Retry: &contract.RetryPolicy{MaxAttempts: &n}}
}

func lostThrice(c *Case) {
	task := c.Play("one", "exit:3", tries(3))
	status := c.End(task)
	if status.Status != contract.StatusError || status.ErrorCode != "WORKER_LOST" || status.Attempt != 3 ||
		!strings.Contains(status.Error, "code 3") {
		c.T.Errorf("it ended as %+v", status)
	}
	const want = "attempt_ended:WORKER_LOST retry_scheduled:WORKER_LOST attempt_ended:WORKER_LOST retry_scheduled:WORKER_LOST " +
		"attempt_ended:WORKER_LOST failed:WORKER_LOST"
	if told := c.Faults(task); told != want {
		c.T.Errorf("its events tell %q", told)
	}
}

func secondAttempt(c *Case) {
	mark := filepath.Join(c.T.TempDir(), "mark")
	status := c.End(c.Play("one", "once:"+mark+" exit:1 success"))
	if status.Status != contract.StatusSuccess || status.Attempt != 2 {
		c.T.Errorf("it ended as %+v", status)
	}
}

func timeLimit(c *Case) {
	policy := tries(1)
	policy.TimeLimitSeconds = new(3)
	policy.CancelGraceSeconds = new(1)
	status := c.End(c.Play("one", "deaf wait:"+Pipe(c.T), policy))
	if status.ErrorCode != "RUN_TIMEOUT" || status.ErrorCategory != "TIMEOUT" || status.Attempt != 1 {
		c.T.Errorf("it ended as %+v", status)
	}
	c.Events(status.TaskID)
}

func lostExit(c *Case) {
	hold, mark := Pipe(c.T), filepath.Join(c.T.TempDir(), "mark")
	task := c.Play("one", "wait:"+hold+" once:"+mark+" exit:3 success")
	c.Running(task)
	Release(c.T, hold)
	if status := c.End(task); status.State != "Completed" || status.Attempt != 2 {
		c.T.Errorf("it ended as %+v", status)
	}
	if told := c.Faults(task); told != "attempt_ended:WORKER_LOST retry_scheduled:WORKER_LOST" {
		c.T.Errorf("its events tell %q", told)
	}
	for _, e := range c.Events(task) {
		if e.Exit != nil {
			c.T.Errorf("an exit that nobody was told: %+v", e)
		}
	}
}
