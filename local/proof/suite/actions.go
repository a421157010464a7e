package suite

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func actions() []Test {
	needs, hooks := []Capability{Programs}, []Capability{Programs, Hooks}
	return []Test{
		{Name: "skip ends the run that finds no slot", Requires: needs, Run: conflictSkip},
		{Name: "wait starts the run with the next slot", Requires: needs, Run: conflictWait},
		{Name: "retry_later starts the run after its delay", Requires: needs, Run: conflictRetryLater},
		{Name: "kill_old cancels the older run", Requires: needs, Run: conflictKillOld},
		{Name: "webhook informs, and the run waits for its slot", Requires: hooks, Run: conflictWebhook},
		{Name: "trigger_job runs another job, and the run waits for its slot", Requires: needs, Run: conflictTriggerJob},
		{Name: "waiting action ends at its limit or with a cancel request", Requires: needs, Run: conflictEnds},
		{Name: "failed action is recorded, and fails the run if it is critical", Requires: hooks, Run: failedAction},
	}
}

// conflict stores a job with one slot and an action, and starts two runs of it. The first run
// holds the slot until release is called.
func (c *Case) conflict(name string, action document) (path string, first, second contract.RunAccepted, release func()) {
	c.T.Helper()
	hold := scripts.Pipe(c.T)
	d := script(holdScript).with("constraints", document{"maxConcurrentRuns": 1}).with("policy", document{"cancelGraceSeconds": 10})
	if action != nil {
		d = d.with("actions", document{"onConstraintViolation": action})
	}
	path = c.job(name, d)
	first = c.runJob(path, map[string]string{"HOLD": hold})
	c.Running(first.TaskID)
	second = c.runJob(path, nil)
	return path, first, second, func() { scripts.Release(c.T, hold) }
}

// wantOneByOne checks that the second run waited for the end of the first.
func (c *Case) wantOneByOne(first, second contract.RunAccepted, state string) {
	c.T.Helper()
	one, two := c.ended(first), c.ended(second)
	if one.State != state || two.State != "Completed" || two.Skipped || two.StartedAt.Before(one.EndedAt) {
		c.T.Errorf("got %s until %s and %s from %s, want %s before Completed", one.State, one.EndedAt, two.State, two.StartedAt, state)
	}
	if !strings.HasPrefix(violated(two), "maxConcurrentRuns: ") {
		c.T.Errorf("got violations %q, want maxConcurrentRuns", violated(two))
	}
}

func conflictSkip(c *Case) {
	path, first, second, release := c.conflict("skip", nil)
	c.wantSkipped(c.ended(second), "maxConcurrentRuns: ")
	release()
	if run := c.ended(first); run.State != "Completed" || run.Skipped {
		c.T.Errorf("got %+v, want the first run completed", run)
	}
	if run := c.endOf(path, nil); run.Skipped {
		c.T.Errorf("got %+v after the first run, want a run", run)
	}
}

func conflictWait(c *Case) {
	_, first, second, release := c.conflict("wait", document{"type": "wait"})
	c.Reach(second.TaskID, "ActionRunning")
	release()
	c.wantOneByOne(first, second, "Completed")
}

func conflictRetryLater(c *Case) {
	_, first, second, release := c.conflict("retry-later", document{"type": "retry_later", "parameters": document{"delay": "2s"}})
	c.Reach(second.TaskID, "ActionRunning")
	release()
	c.wantOneByOne(first, second, "Completed")
}

func conflictKillOld(c *Case) {
	_, first, second, _ := c.conflict("kill-old", document{"type": "kill_old"})
	c.wantOneByOne(first, second, "Cancelled")
	if old := c.task(first.RunID); old.Cancel == nil || !strings.Contains(old.Cancel.Reason, second.RunID) {
		c.T.Errorf("got the cancel request %+v, want one that names %s", old.Cancel, second.RunID)
	}
}

func conflictWebhook(c *Case) {
	_, first, second, release := c.conflict("webhook", c.webhook("conflict", http.StatusOK))
	if call := c.received("conflict", 1)[0]; call.Run.RunID != second.RunID || call.Constraint == nil || call.Constraint.Name != "maxConcurrentRuns" {
		c.T.Errorf("got %+v, want the violation of %s", call, second.RunID)
	}
	release()
	c.wantOneByOne(first, second, "Completed")
}

func conflictTriggerJob(c *Case) {
	other := c.job("conflict-other", script("true"))
	_, first, second, release := c.conflict("trigger-job", document{"type": "trigger_job", "parameters": document{"jobId": jobID(other)}})
	if triggered := c.runsThat(other, 1, hasEnded); triggered[0].Trigger != "trigger_job" || triggered[0].State != "Completed" {
		c.T.Errorf("got %+v, want a triggered run while the other one waits", triggered[0])
	}
	release()
	c.wantOneByOne(first, second, "Completed")
}

func conflictEnds(c *Case) {
	path, first, second, release := c.conflict("limited", document{"type": "wait", "parameters": document{"limit": "2s"}})
	if run := c.ended(second); run.State != "Failed" || run.Fault == nil || run.Fault.Code != "ACTION_TIMEOUT" {
		c.T.Errorf("got %s with %+v, want Failed with ACTION_TIMEOUT", run.State, run.Fault)
	}
	send[contract.Problem](c, http.MethodPatch, path, `{"actions": {"onConstraintViolation": {"type": "wait", "parameters": {"limit": "soon"}}}}`, http.StatusBadRequest)
	send[struct{}](c, http.MethodPatch, path, `{"actions": {"onConstraintViolation": {"type": "wait", "parameters": {"limit": "1h"}}}}`, http.StatusOK)
	third := c.runJob(path, nil)
	c.Reach(third.TaskID, "ActionRunning")
	c.cancelRun(third.RunID)
	if run := c.ended(third); run.State != "Cancelled" || run.Machine != nil {
		c.T.Errorf("got %+v, want Cancelled without a machine", run)
	}
	release()
	if run := c.ended(first); run.State != "Completed" {
		c.T.Errorf("got %+v, want the first run completed", run)
	}
}

// failedAction violates a constraint whose webhook fails.
func failedAction(c *Case) {
	for _, critical := range []bool{false, true} {
		topic := fmt.Sprint("failed-", critical)
		path := c.job(topic, script(holdScript).with("constraints", document{"requirePreviousSuccess": true}))
		c.endOf(path, map[string]string{"CODE": "1"})
		action := c.webhook(topic, http.StatusInternalServerError).with("critical", critical)
		send[struct{}](c, http.MethodPatch, path, string(outside.Encode(c.T, document{"actions": document{"onConstraintViolation": action}})), http.StatusOK)
		run := c.endOf(path, nil)
		if failed := run.Fault != nil && run.Fault.Code == "ACTION_FAILED"; failed != critical || (run.State == "Failed") != critical {
			c.T.Errorf("critical=%t: got %s with %+v, want a failure only if it is critical", critical, run.State, run.Fault)
		}
		if events := c.messages(run.TaskID, "job.action_failed"); len(events) != 1 || !strings.HasPrefix(events[0], "webhook: ") {
			c.T.Errorf("critical=%t: got events %q, want one of the webhook", critical, events)
		}
		if calls := c.received(topic, 3); len(calls) != 3 {
			c.T.Errorf("critical=%t: got %d calls, want three tries", critical, len(calls))
		}
	}
}
