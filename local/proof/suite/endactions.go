package suite

import (
	"net/http"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func endActions() []Test {
	needs, hooks := []Capability{Programs}, []Capability{Programs, Hooks}
	return []Test{
		{Name: "success, failure and skip have their own actions", Requires: hooks, Run: ownEndActions},
		{Name: "each action of an event runs once", Requires: hooks, Run: listedActions},
		{Name: "failed notification is sent again", Requires: hooks, Run: redelivered},
		{Name: "jobs that trigger each other stop", Requires: needs, Run: circle},
		{Name: "triggered run and its parent name each other", Requires: needs, Run: lineage},
		{Name: "jobs come after others", Requires: needs, Run: jobsAfterOthers},
		{Name: "large results of jobs are a file", Requires: needs, Run: upstreamFile},
		{Name: "job takes each event once", Requires: needs, Run: jobTakesEvents},
		{Name: "job polls a bucket", Requires: hooks, Run: jobPollsABucket},
		{Name: "job polls a queue", Requires: hooks, Run: jobPollsAQueue},
	}
}

func ownEndActions(c *Case) {
	path := c.job("ends", script(holdScript).with("actions", document{
		"onSuccess": c.webhook("success", http.StatusOK), "onFailure": c.webhook("failure", http.StatusOK), "onSkip": c.webhook("skip", http.StatusOK),
	}).with("constraints", document{"requirePreviousSuccess": true}))
	good, bad := c.endOf(path, nil), c.endOf(path, map[string]string{"CODE": "2"})
	for topic, want := range map[string]contract.Task{"success": good, "failure": bad, "skip": c.endOf(path, nil)} {
		hook := map[string]string{"success": "onSuccess", "failure": "onFailure", "skip": "onSkip"}[topic]
		calls := c.received(topic, 1)
		if len(calls) != 1 || calls[0].Hook != hook || calls[0].Run.RunID != want.RunID || calls[0].Run.State != want.State {
			c.T.Errorf("got %+v, want %s of %s", calls, hook, want.RunID)
		}
		c.eventually("event of "+hook, func() bool {
			events := slices.DeleteFunc(c.messages(want.TaskID, "job.action_executed"), func(message string) bool { return message == "skip" })
			return len(events) == 1 && strings.HasPrefix(events[0], hook+": webhook")
		})
	}
	if bad.Fault == nil || bad.Fault.Code != "PROGRAM_EXIT" || bad.Machine.Exit.Code != 2 {
		c.T.Errorf("got %+v, want a failure with exit code 2", bad)
	}
}

// listedActions runs a job whose first attempt is retried, and whose failure has two actions.
func listedActions(c *Case) {
	path := c.job("listed", script("exit 7").with("retryConfig", document{"maxRetries": 1, "initialDelay": "1s"}).with("actions", document{
		"onRetry": c.webhook("retry", http.StatusOK), "onFailure": []document{c.webhook("first", http.StatusOK), c.webhook("second", http.StatusOK)},
	}))
	run := c.endOf(path, nil)
	ids := map[string]bool{}
	for topic, hook := range map[string]string{"retry": "onRetry", "first": "onFailure", "second": "onFailure"} {
		calls := c.received(topic, 1)
		if calls[0].Hook != hook || calls[0].Run.RunID != run.RunID {
			c.T.Errorf("got %+v, want %s of %s", calls[0], hook, run.RunID)
		}
		for _, call := range calls { // a repetition has the same id
			ids[call.Message] = true
		}
	}
	if len(ids) != 3 {
		c.T.Errorf("got the messages %v, want three", ids)
	}
	c.eventually("events of the actions", func() bool {
		events := c.messages(run.TaskID, "job.action_executed")
		slices.Sort(events)
		return len(events) == 3 && strings.HasPrefix(events[0], "onFailure-2: webhook") && strings.HasPrefix(events[1], "onFailure: webhook") && strings.HasPrefix(events[2], "onRetry#1: webhook")
	})
}

// circle runs two jobs that trigger each other.
func circle(c *Case) {
	trigger := func(path string) document {
		return document{"onSuccess": document{"type": "trigger_job", "parameters": document{"jobId": jobID(path)}}}
	}
	one, two := c.jobPath("circle-one"), c.jobPath("circle-two")
	c.job("circle-one", script("true").with("actions", trigger(two)))
	c.job("circle-two", script("true").with("actions", trigger(one)))
	c.endOf(one, nil)
	second := c.runsThat(two, 1, hasEnded)[0]
	c.eventually("event of the circle", func() bool {
		events := c.messages(second.TaskID, "job.action_failed")
		return len(events) == 1 && strings.Contains(events[0], "circle")
	})
	for _, path := range []string{one, two} {
		if runs := c.runs(path); len(runs) != 1 {
			c.T.Errorf("%s: got %d runs, want 1", path, len(runs))
		}
	}
}

// lineage runs a job that passes its output to another one.
func lineage(c *Case) {
	child := c.job("lineage-child", script(`echo "$CHANNEL $VERSION $SORTIE_PARENT_RUN_ID $SORTIE_PARENT_STATE $SORTIE_PARENT_OUTPUT_SIZE"`))
	parent := c.job("lineage-parent", script(`echo v1.2 >"$SORTIE_OUTPUT"`).with("output", document{"path": "version.txt"}).with("actions", document{
		"onSuccess": document{"type": "trigger_job", "parameters": document{
			"jobId": jobID(child), "parameters": document{"CHANNEL": "beta", "VERSION": document{"fromOutput": true}},
		}},
	}))
	from := c.endOf(parent, nil)
	to := c.runsThat(child, 1, hasEnded)[0]
	if by := to.TriggeredBy; by == nil || by.JobID != jobID(parent) || by.RunID != from.RunID {
		c.T.Errorf("got triggeredBy %+v, want run %s of %s", by, from.RunID, jobID(parent))
	}
	want := []contract.JobRunRef{{JobID: jobID(child), RunID: to.RunID}}
	c.eventually("run that was triggered", func() bool { return slices.Equal(c.task(from.RunID).Triggered, want) })
	if s := outside.Get[contract.Status](c.Client, "/status/"+from.TaskID); !slices.Equal(s.Triggered, want) {
		c.T.Errorf("got the status %+v, want the runs %v", s, want)
	}
	if log, want := c.log(to.TaskID), "beta v1.2 "+from.RunID+" Completed 5\n"; !strings.Contains(log, want) {
		c.T.Errorf("got the log %q, want %q", log, want)
	}
}

func hooks() []Test {
	return []Test{
		{Name: "hook without a secret is not signed", Requires: []Capability{Programs, Hooks}, Run: unsignedHook},
		{Name: "hook to a private address is refused", Run: privateHook},
	}
}

func unsignedHook(c *Case) {
	hook := document{"url": c.hooks.URL + "/" + c.topic("plain") + "/200/unsigned"}
	run := c.endOf(c.job("unsigned", script("true").with("constraints", document{"preRunHook": hook})), nil)
	if call := c.received("plain", 1)[0]; run.State != "Completed" || call.Run.RunID != run.RunID {
		c.T.Errorf("got %s and %+v, want a completed run that the hook allows", run.State, call)
	}
}

func privateHook(c *Case) {
	path := c.jobPath("private")
	for _, address := range []string{"https://10.0.0.1/", "https://169.254.169.254/latest/", "https://[::1]/", "https://[fd00::1]/", "https://0x7f.1/", "http://example.org/"} {
		for field, d := range map[string]document{
			"constraints.preRunHook.url": {"constraints": document{"preRunHook": document{"url": address}}},
			"actions.onFailure.parameters.url": {
				"actions": document{"onFailure": document{"type": "webhook", "parameters": document{"url": address}}},
			},
		} {
			answer := c.Call(http.MethodPut, path, string(outside.Encode(c.T, d.with("image", "a"))))
			if p := answer.Problem(c.T); answer.Status < 400 || answer.Status >= 500 || len(p.Problems) != 1 || p.Problems[0].Field != field {
				c.T.Errorf("%s: got %d %s, want an error of the field %s", address, answer.Status, answer.Body, field)
			}
		}
	}
	send[contract.Problem](c, http.MethodGet, path, "", http.StatusNotFound)
}

func secrets() []Test {
	return []Test{{Name: "secret reaches its program and nothing else", Requires: []Capability{Programs, Hooks}, Run: secretIsMasked}}
}

// secretIsMasked runs a program that prints its secret. The printed length proves that the
// program received the secret.
func secretIsMasked(c *Case) {
	secret := clients.Secrets()[clients.PasswordSecret]
	path := c.job("secret", script(`echo "length ${#PASSWORD}"; echo "the value is $PASSWORD"; echo "$PASSWORD" >&2`).
		with("env", document{"PASSWORD": document{"secretRef": clients.PasswordSecret}}))
	run := c.endOf(path, nil)
	log := c.log(run.TaskID)
	if run.State != "Completed" || !strings.Contains(log, "length 24\n") || !strings.Contains(log, "the value is ") {
		c.T.Errorf("got %s with log %q, want a program that has the secret", run.State, log)
	}
	for _, shown := range []string{path, path + "/runs", path + "/versions/1", "/v1/tasks/" + run.TaskID, "/v1/tasks/" + run.TaskID + "/events", "/v1/runs/" + run.RunID + "/updates", "/v1/tasks/" + run.TaskID + "/logs"} {
		if answer := c.Call(http.MethodGet, shown, ""); answer.Status != http.StatusOK || strings.Contains(string(answer.Body), secret) {
			c.T.Errorf("GET %s: got %d with the secret in %s", shown, answer.Status, answer.Body)
		}
	}
	_, header := send[api.JobAnswer](c, http.MethodPatch, path, `{"env": {"PASSWORD": {"secretRef": "unknown-name"}}}`, http.StatusOK)
	if warned := header.Get("Warning"); !strings.Contains(warned, "env.PASSWORD.secretRef: no secret") {
		c.T.Errorf("got the warning %q, want one of the unknown secret", warned)
	}
	if run := c.endOf(path, nil); run.State != "Failed" || run.Fault == nil || run.Fault.Code != "SECRET_MISSING" || strings.Contains(c.log(run.TaskID), secret) {
		c.T.Errorf("got %s with %+v, want Failed with SECRET_MISSING", run.State, run.Fault)
	}
}
