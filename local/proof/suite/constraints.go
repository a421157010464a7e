package suite

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func constraints() []Test {
	needs, hooks := []Capability{Programs}, []Capability{Programs, Hooks}
	return []Test{
		{Name: "previous success is required", Requires: hooks, Run: previousSuccess},
		{Name: "late run violates the window", Requires: append(slices.Clone(needs), ShortWindows), Run: lateRun},
		{Name: "window that wake-ups do not keep is refused", Requires: needs, Run: shortWindow},
		{Name: "hook before the run decides", Requires: hooks, Run: hookBefore},
		{Name: "expected run time is exceeded once", Requires: hooks, Run: expectedRunTime},
		{Name: "allowed run time ends the run", Requires: needs, Run: allowedRunTime},
		{Name: "hook after the run is recorded", Requires: hooks, Run: hookAfter},
	}
}

// violated returns the violated constraints of a run, with their messages.
func violated(r contract.Task) string {
	var all []string
	for _, v := range r.Violations {
		all = append(all, v.Constraint+": "+v.Message)
	}
	return strings.Join(all, "; ")
}

// wantSkipped checks that a run was skipped for a constraint.
func (c *Case) wantSkipped(r contract.Task, violation string) {
	c.T.Helper()
	if r.State != "Completed" || !r.Skipped || r.Machine != nil || !strings.Contains(violated(r), violation) {
		c.T.Errorf("got %s, skipped=%t, for %q, want a run that was skipped for %q", r.State, r.Skipped, violated(r), violation)
	}
	status := outside.Get[contract.Status](c.Client, "/status/"+r.TaskID)
	if status.Status != "error" || !status.Skipped || status.ErrorCode != "SKIPPED" || !strings.Contains(status.Error, violation) {
		c.T.Errorf("got the status %+v, want an error with SKIPPED and %q", status, violation)
	}
	if ends := [2]int{len(c.messages(r.TaskID, "job.skipped")), len(c.messages(r.TaskID, "job.completed"))}; ends != [2]int{1, 0} {
		c.T.Errorf("got %d events job.skipped and job.completed, want one job.skipped", ends)
	}
	for filter, want := range map[string]bool{"true": true, "false": false} {
		list := outside.Get[contract.TaskList](c.Client, "/v1/runs?limit=1000&jobId="+r.JobID+"&skipped="+filter)
		if listed := slices.ContainsFunc(list.Tasks, func(t contract.Task) bool { return t.RunID == r.RunID }); listed != want {
			c.T.Errorf("got the run in the list with skipped=%s: %t, want %t", filter, listed, want)
		}
	}
	if m := r.Measured; m.Success || !m.Skipped {
		c.T.Errorf("got %+v of a skipped run, want it skipped without success", m)
	}
}

// previousSuccess fails a job and then runs it with each action that needs no slot.
func previousSuccess(c *Case) {
	other := c.job("previous-other", script("true"))
	definition := script(holdScript).with("constraints", document{"requirePreviousSuccess": true})
	path := c.job("previous", definition)
	if run := c.endOf(path, map[string]string{"CODE": "1"}); run.State != "Failed" || len(run.Violations) > 0 {
		c.T.Fatalf("got %s for %q, want a first run that fails", run.State, violated(run))
	}
	for range 2 { // a skipped run does not count as a result
		c.wantSkipped(c.endOf(path, nil), "requirePreviousSuccess: run ")
	}
	action := func(a document) {
		definition["actions"] = document{"onConstraintViolation": a}
		send[api.JobAnswer](c, http.MethodPut, path, string(outside.Encode(c.T, definition)), http.StatusOK)
	}
	started := func(code string) contract.Task {
		run := c.endOf(path, map[string]string{"CODE": code})
		if run.Skipped || run.Attempt != 1 || !strings.HasPrefix(violated(run), "requirePreviousSuccess") {
			c.T.Errorf("got %+v, want a run that starts in spite of its violation", run)
		}
		return run
	}
	action(c.webhook("violation", http.StatusOK))
	run := started("1")
	if call := c.received("violation", 1)[0]; call.Hook != "onConstraintViolation" || call.Constraint == nil || call.Constraint.Name != "requirePreviousSuccess" || call.Run.RunID != run.RunID {
		c.T.Errorf("got %+v, want the violation of %s", call, run.RunID)
	}
	c.clearedWait(path, action)
	action(document{"type": "trigger_job", "parameters": document{"jobId": jobID(other)}})
	started("0")
	if triggered := c.runsThat(other, 1, hasEnded); len(triggered) != 1 || triggered[0].Trigger != "trigger_job" || triggered[0].State != "Completed" {
		c.T.Errorf("got %+v, want one triggered run", triggered)
	}
	if run := c.endOf(path, nil); run.State != "Completed" || len(run.Violations) > 0 {
		c.T.Errorf("got %s for %q after a success, want no violation", run.State, violated(run))
	}
}

// clearedWait makes a run wait after a failed one until the result is cleared. The run then
// fails, too.
func (c *Case) clearedWait(path string, action func(document)) {
	c.T.Helper()
	action(document{"type": "retry_later", "parameters": document{"delay": "1s"}})
	waiting := c.runJob(path, map[string]string{"CODE": "1"})
	c.Reach(waiting.TaskID, "ActionRunning")
	first := c.task(waiting.RunID).Violations[0].Timestamp
	c.eventually("second check of the constraints", func() bool { return c.task(waiting.RunID).Violations[0].Timestamp.After(first) })
	if run := c.task(waiting.RunID); run.State != "ActionRunning" || run.Attempt != 0 {
		c.T.Errorf("got %s in attempt %d after a failed run, want a run that waits", run.State, run.Attempt)
	}
	send[api.JobAnswer](c, http.MethodPost, path+"/clear", "", http.StatusOK)
	if run := c.ended(waiting); run.State != "Failed" || run.Attempt != 1 {
		c.T.Errorf("got %s in attempt %d after the result was cleared, want a run that fails", run.State, run.Attempt)
	}
}

// shortWindow stores a job with a window of seconds. Targets whose wake-ups are up to 90 s late
// must refuse it.
func shortWindow(c *Case) {
	_, _, late := c.Target.lacks([]Capability{ShortWindows})
	for window, refused := range map[string]bool{"10s": late, "89s": late, "90s": false} {
		definition := script("true").with("schedule", "@daily").with("constraints", document{"catchUpWindow": window})
		path := c.jobPath("window-" + window)
		c.stored = append(c.stored, path)
		answer := c.Call(http.MethodPut, path, string(outside.Encode(c.T, definition)))
		if got := answer.Status == http.StatusUnprocessableEntity && strings.Contains(string(answer.Body), "constraints.catchUpWindow"); got != refused || !refused && answer.Status != http.StatusCreated {
			c.T.Errorf("%s: got %d %s, want it refused: %t", window, answer.Status, answer.Body, refused)
		}
	}
}

// lateRun spreads jobs over a time that exceeds their window.
func lateRun(c *Case) {
	const window, jitter, jobs = 2, 20, 5
	late := 0
	var paths []string
	for i := range jobs {
		at := c.soon("/healthz", 8*time.Second)
		paths = append(paths, c.job(fmt.Sprint("late-", i), script("true").with("schedule", "@at "+at.Format(time.RFC3339)).
			with("jitter", fmt.Sprintf("%ds", jitter)).with("constraints", document{"catchUpWindow": fmt.Sprintf("%ds", window)})))
	}
	for _, path := range paths {
		run := c.runsThat(path, 1, hasEnded)[0]
		if run.LatenessSeconds == nil || *run.LatenessSeconds > jitter+window+60 {
			c.T.Errorf("got a firing that is %v s late, want at most about %d s", run.LatenessSeconds, jitter)
		} else if *run.LatenessSeconds > window {
			late++
			c.wantSkipped(run, "catchUpWindow: the run is ")
		}
	}
	if late == 0 {
		c.T.Errorf("got %d firings within %d s of %d s, want late ones", jobs, window, jitter)
	}
}

// hookBefore runs jobs concurrently, one for each answer of their hook.
func hookBefore(c *Case) {
	paths, started := map[string]string{}, map[string]contract.RunAccepted{}
	for topic, hook := range map[string]document{
		"allow": c.hook("allow", http.StatusNoContent), "refuse": c.hook("refuse", http.StatusConflict),
		"critical": c.hook("critical", http.StatusForbidden, document{"critical": true}),
		"down":     c.hook("down", http.StatusServiceUnavailable),
		"lenient":  c.hook("lenient", http.StatusServiceUnavailable, document{"onUnavailable": "allow"}),
	} {
		paths[topic] = c.job("before-"+topic, script("true").with("constraints", document{"preRunHook": hook}))
		started[topic] = c.runJob(paths[topic], nil)
	}
	asked := func(topic string) contract.Task {
		run := c.ended(started[topic])
		call := c.received(topic, 1)[0]
		if call.Hook != "preRunHook" || call.Run.RunID != run.RunID || call.Job == nil || call.Job.ID != jobID(paths[topic]) {
			c.T.Errorf("%s: got %+v, want a question about %s", topic, call, run.RunID)
		}
		return run
	}
	if run := asked("allow"); run.State != "Completed" || run.Skipped || len(run.Violations) > 0 {
		c.T.Errorf("allowed: got %+v, want a run", run)
	}
	c.wantSkipped(asked("refuse"), "preRunHook: the hook refuses the run: "+refusal)
	if run := asked("critical"); run.State != "Failed" || run.Fault == nil || run.Fault.Code != "HOOK_REFUSED" || run.Machine != nil {
		c.T.Errorf("refused and critical: got %+v, want Failed with HOOK_REFUSED", run)
	}
	run := asked("down")
	c.wantSkipped(run, "preRunHook: the hook cannot be reached")
	calls := c.received("down", 3)
	if len(calls) != 3 || calls[0].Message != calls[2].Message || !run.Violations[0].Unchecked {
		c.T.Errorf("unavailable: got %d calls, violation %+v, want three tries of one message, unchecked", len(calls), run.Violations)
	}
	if run := asked("lenient"); run.State != "Completed" || run.Skipped {
		c.T.Errorf("unavailable and allowed: got %+v, want a run", run)
	}
}

func expectedRunTime(c *Case) {
	hold := scripts.Pipe(c.T)
	path := c.job("expected", script(holdScript).with("constraints", document{"maxExpectedRunTime": "1s"}).
		with("actions", document{"onViolationOf": document{"maxExpectedRunTime": c.webhook("slow", http.StatusOK)}}))
	accepted := c.runJob(path, map[string]string{"HOLD": hold})
	c.eventually("violation of the expected run time", func() bool { return len(c.task(accepted.RunID).Violations) > 0 })
	scripts.Release(c.T, hold)
	run := c.ended(accepted)
	if run.State != "Completed" || len(run.Violations) != 1 || !strings.HasPrefix(violated(run), "maxExpectedRunTime: ") {
		c.T.Errorf("got %s for %q, want Completed with one violation", run.State, violated(run))
	}
	if found := c.messages(run.TaskID, "job.expected_time_exceeded"); len(found) != 1 {
		c.T.Errorf("got events %q, want one", found)
	}
	if call := c.received("slow", 1)[0]; call.Run.State != "Completed" || call.Constraint == nil || call.Constraint.Name != "maxExpectedRunTime" {
		c.T.Errorf("got %+v, want the violation after the run", call)
	}
	// The same limit is enough for a program that ends at once.
	if quick := c.endOf(path, nil); quick.State != "Completed" {
		c.T.Errorf("got %+v, want Completed", quick)
	}
}

func allowedRunTime(c *Case) {
	other := c.job("allowed-other", script("true"))
	path := c.job("allowed", script("exec sleep 600").with("constraints", document{"maxAllowedRunTime": "3s"}).
		with("actions", document{"onFailure": document{"type": "trigger_job", "parameters": document{"jobId": jobID(other)}}}))
	run := c.endOf(path, nil)
	if run.State != "Failed" || run.Fault == nil || run.Fault.Code != "RUN_TIMEOUT" || !strings.HasPrefix(violated(run), "maxAllowedRunTime: ") {
		c.T.Errorf("got %s with %+v for %q, want Failed with RUN_TIMEOUT", run.State, run.Fault, violated(run))
	}
	if triggered := c.runsThat(other, 1, hasEnded); triggered[0].Trigger != "trigger_job" {
		c.T.Errorf("got %+v, want a triggered run", triggered[0])
	}
}

func hookAfter(c *Case) {
	started := map[bool]contract.RunAccepted{}
	for _, critical := range []bool{false, true} {
		topic := fmt.Sprint("after-", critical)
		started[critical] = c.runJob(c.job(topic, script("true").with("constraints", document{
			"postRunHook": c.hook(topic, http.StatusConflict, document{"critical": critical}),
		})), nil)
	}
	for critical, accepted := range started {
		run := c.ended(accepted)
		if want := "postRunHook: the hook refuses the run: " + refusal; violated(run) != want {
			c.T.Errorf("got the violations %q, want %q", violated(run), want)
		}
		if failed := run.Fault != nil && run.Fault.Code == "HOOK_REFUSED"; failed != critical || (run.State == "Failed") != critical {
			c.T.Errorf("critical=%t: got %s with %+v, want a failure only if it is critical", critical, run.State, run.Fault)
		}
		if events := c.messages(run.TaskID, "job.constraint_violated"); !slices.Contains(events, violated(run)) {
			c.T.Errorf("got events %q, want the violation", events)
		}
		if calls := c.received(fmt.Sprint("after-", critical), 1); len(calls) != 1 || calls[0].Hook != "postRunHook" {
			c.T.Errorf("got %+v, want one question", calls)
		}
	}
}
