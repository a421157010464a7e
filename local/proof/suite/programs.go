package suite

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// ProgramImage is an image of the target whose program is a POSIX shell.
const ProgramImage = "programs/sh:latest"

func programs() []Test {
	needs := []Capability{Programs}
	return []Test{
		{Name: "program that succeeds is a completed run", Requires: needs, Run: programSucceeds},
		{Name: "program that fails ends with its exit code", Requires: needs, Run: programFails},
		{Name: "exit codes of a program are mapped", Requires: needs, Run: programCodes},
		{Name: "program is cancelled", Requires: needs, Run: programCancelled},
		{Name: "run fails at its deadline over all attempts", Requires: needs, Run: programDeadline},
		{Name: "program reads its input and delivers its output and log", Requires: needs, Run: programDelivers},
		{Name: "program's output is followed", Requires: needs, Run: programFollowed},
		{Name: "program gets the trace context of its attempt", Requires: needs, Run: programTraced},
		{Name: "repeated request is one run of a program", Requires: needs, Run: programOnce},
		{Name: "program of the host is refused elsewhere", Requires: []Capability{NoHostPrograms}, Run: programOfTheHost},
	}
}

// document is a JSON object of a request, such as a run of a shell script.
type document map[string]any

func script(text string) document {
	return document{"image": ProgramImage, "command": []string{"-c", text}, "retryConfig": map[string]any{"maxRetries": 0}}
}

// with sets a member and returns the document.
func (d document) with(name string, value any) document {
	d[name] = value
	return d
}

// startProgram starts a run of a program.
func (c *Case) startProgram(d document) contract.RunAccepted {
	c.T.Helper()
	answer := c.Call(http.MethodPost, "/v1/runs", string(outside.Encode(c.T, d)))
	if answer.Status != http.StatusAccepted {
		c.T.Fatalf("POST /v1/runs: got %d %s, want 202", answer.Status, answer.Body)
	}
	accepted := outside.Decode[contract.RunAccepted](c.T, answer.Body)
	if location := answer.Header.Get("Location"); location != "/v1/runs/"+url.PathEscape(accepted.RunID) {
		c.T.Errorf("got Location %q, want the path of %s", location, accepted.RunID)
	}
	c.tasks.add(accepted.TaskID)
	return accepted
}

// ended waits for the end of a run and reads the run by its run id.
func (c *Case) ended(accepted contract.RunAccepted) contract.Task {
	c.T.Helper()
	c.End(accepted.TaskID)
	return outside.Get[contract.Task](c.Client, "/v1/runs/"+url.PathEscape(accepted.RunID))
}

func programSucceeds(c *Case) {
	run := c.ended(c.startProgram(script("true")))
	if run.State != "Completed" || run.Kind != "job" || run.Machine == nil || run.Machine.Exit == nil || run.Machine.Exit.Code != 0 || run.Program == nil {
		c.T.Errorf("got %+v, want a completed job with exit code 0", run)
	}
	if !strings.HasPrefix(run.TaskID, "job_") || run.RunID != run.TaskID || run.Trigger != "request" {
		c.T.Errorf("got task %s, run %s by %s, want one id of a job by a request", run.TaskID, run.RunID, run.Trigger)
	}
	updates := outside.Get[contract.RunUpdates](c.Client, "/v1/runs/"+run.RunID+"/updates").Updates
	again := outside.Get[contract.RunUpdates](c.Client, "/v1/runs/"+run.RunID+"/updates").Updates
	ids := map[string]bool{}
	for i, u := range updates {
		ids[u.UpdateID] = true
		if u.UpdateID != again[i].UpdateID || u.RunID != run.RunID {
			c.T.Errorf("got update %+v, then %+v, want one id of the run", u, again[i])
		}
	}
	if last := updates[len(updates)-1]; len(ids) != len(updates) || last.Status != "Completed" || !last.Success || last.ExitCode == nil || *last.ExitCode != 0 {
		c.T.Errorf("got %d ids of %d updates, the last %+v, want each once and a success with exit code 0", len(ids), len(updates), last)
	}
	list := outside.Get[contract.TaskList](c.Client, "/v1/runs?kind=job&limit=1000")
	if !slices.ContainsFunc(list.Tasks, func(t contract.Task) bool { return t.TaskID == run.TaskID }) {
		c.T.Errorf("got no run %s in the list of jobs", run.TaskID)
	}
}

func programFails(c *Case) {
	for text, want := range map[string]contract.Exit{"false": {Code: 1}, "echo why >&2; exit 3": {Code: 3}, "kill -SEGV $$": {Code: 139, Signal: 11}} {
		run := c.ended(c.startProgram(script(text)))
		if run.State != "Failed" || run.Fault == nil || run.Fault.Code != "PROGRAM_EXIT" || run.Attempt != 1 {
			c.T.Fatalf("%s: got %s with %+v in attempt %d, want PROGRAM_EXIT in attempt 1", text, run.State, run.Fault, run.Attempt)
		}
		if exit := run.Machine.Exit; exit == nil || exit.Code != want.Code || strings.Contains(text, "why") && !strings.Contains(run.Fault.Message, "why") {
			c.T.Errorf("%s: got exit %+v, %q, want %+v", text, exit, run.Fault.Message, want)
		}
	}
}

func programCodes(c *Case) {
	retried := script("exit 7").with("exitCodes", map[string]any{"success": []int{3}, "fail": []int{9}}).
		with("retryConfig", map[string]any{"maxRetries": 1, "initialDelay": "1s"})
	if run := c.ended(c.startProgram(retried)); run.State != "Failed" || run.Attempt != 2 {
		c.T.Errorf("got %s in attempt %d, want a failure in attempt 2", run.State, run.Attempt)
	}
	retried["command"] = []string{"-c", "exit 9"}
	if run := c.ended(c.startProgram(retried)); run.State != "Failed" || run.Attempt != 1 {
		c.T.Errorf("got %s in attempt %d, want a final failure in attempt 1", run.State, run.Attempt)
	}
	retried["command"] = []string{"-c", "exit 3"}
	if run := c.ended(c.startProgram(retried)); run.State != "Completed" || run.Machine.Exit.Code != 3 {
		c.T.Errorf("got %s, want Completed with exit code 3", run.State)
	}
}

// programTraced prints the trace context of two attempts, which differ only in the span.
// Without a client's trace context the run has its own trace.
func programTraced(c *Case) {
	const client = "4bf92f3577b34da6a3ce929d0e0e4736"
	for header, want := range map[string]string{"00-" + client + "-00f067aa0ba902b7-01": client, "00-" + client + "-0000000000000000-01": ""} {
		d := script(`echo "$TRACEPARENT"; exit 7`).with("logs", "keep").with("exitCodes", map[string]any{"fail": []int{9}}).
			with("retryConfig", map[string]any{"maxRetries": 1, "initialDelay": "1s"})
		answer := c.Call(http.MethodPost, "/v1/runs", string(outside.Encode(c.T, d)), "Traceparent", header)
		if answer.Status != http.StatusAccepted {
			c.T.Fatalf("POST /v1/runs: got %d %s, want 202", answer.Status, answer.Body)
		}
		accepted := outside.Decode[contract.RunAccepted](c.T, answer.Body)
		c.tasks.add(accepted.TaskID)
		c.ended(accepted)
		var contexts []string
		for attempt := 1; attempt <= 2; attempt++ {
			log := c.Call(http.MethodGet, "/v1/tasks/"+accepted.TaskID+"/logs?attempt="+strconv.Itoa(attempt), "")
			contexts = append(contexts, strings.TrimSpace(string(log.Body)))
		}
		first, second := contexts[0], contexts[1]
		if len(first) != 55 || len(second) != 55 || first[:35] != second[:35] || first == second {
			c.T.Fatalf("got contexts %q, want two spans of one trace", contexts)
		}
		if trace := first[3:35]; trace != want && (want != "" || trace == client) {
			c.T.Errorf("%s: got trace %s, want %s", header, trace, want)
		}
	}
}

// programDeadline runs a program that fails fast until its retry would be too late, and one that
// runs for too long.
func programDeadline(c *Case) {
	retried := script("exit 7").with("deadline", "20s").with("retryConfig", map[string]any{"maxRetries": 50, "initialDelay": "8s", "maxDelay": "8s"})
	run := c.ended(c.startProgram(retried))
	if run.State != "Failed" || run.Attempt > 10 || run.Fault == nil || !strings.Contains(run.Fault.Message, "deadline") {
		c.T.Errorf("got %s in attempt %d with %+v, want a failure in attempt 1 to 10 that names the deadline", run.State, run.Attempt, run.Fault)
	}
	run = c.ended(c.startProgram(script("sleep 600").with("deadline", "10s").with("policy", map[string]any{"cancelGraceSeconds": 1})))
	if run.State != "Failed" || run.Fault == nil || run.Fault.Code != "DEADLINE_EXCEEDED" || run.Attempt > 1 {
		c.T.Errorf("got %s in attempt %d with %+v, want DEADLINE_EXCEEDED in attempt 1", run.State, run.Attempt, run.Fault)
	}
	if p := run.Policy.DeadlineSeconds; p == nil || *p != 10 {
		c.T.Errorf("got policy %+v, want a deadline of 10 s", run.Policy)
	}
	bad := c.Call(http.MethodPost, "/v1/runs", string(outside.Encode(c.T, script("true").with("deadline", "2s"))))
	if p := bad.Problem(c.T); bad.Status != http.StatusBadRequest || len(p.Problems) != 1 || p.Problems[0].Field != "deadline" {
		c.T.Errorf("got %d %s, want 400 for the field deadline", bad.Status, bad.Body)
	}
}

func programCancelled(c *Case) {
	accepted := c.startProgram(script("sleep 600").with("policy", map[string]any{"cancelGraceSeconds": 10}))
	c.Running(accepted.TaskID)
	answer := c.Call(http.MethodPost, "/v1/runs/"+accepted.RunID+"/cancel", `{"reason":"enough"}`)
	if answer.Status != http.StatusAccepted {
		c.T.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
	}
	if file := c.Call(http.MethodGet, "/download/"+accepted.TaskID, ""); file.Status != http.StatusBadRequest || file.Problem(c.T).Code != "NOT_READY" {
		c.T.Errorf("got %d %s for the output of a run that has not ended, want 400 NOT_READY", file.Status, file.Body)
	}
	if run := c.ended(accepted); run.State != "Cancelled" || run.Cancel == nil || run.Cancel.Reason != "enough" {
		c.T.Errorf("got %s with %+v, want Cancelled for the reason", run.State, run.Cancel)
	}
}

func programDelivers(c *Case) {
	input := strings.Repeat("0123456789\n", 20_000)
	p := script(`wc -c | tr -d ' '; echo "level $LEVEL"; mkdir out; printf '<b>bold</b>' > out/report.html`).
		with("input", base64.StdEncoding.EncodeToString([]byte(input))).
		with("env", map[string]string{"LEVEL": "info"}).
		with("output", map[string]any{"path": "out/report.html", "contentType": "text/html"})
	run := c.ended(c.startProgram(p))
	if run.State != "Completed" || run.Output == nil || run.Output.FileName != "report.html" || run.Program.Input.Size != int64(len(input)) {
		c.T.Fatalf("got %s with %+v, fault %+v, want Completed with report.html", run.State, run.Output, run.Fault)
	}
	log := c.Call(http.MethodGet, "/v1/tasks/"+run.TaskID+"/logs", "")
	if !strings.Contains(string(log.Body), "220000\nlevel info\n") {
		c.T.Errorf("got log %d %q, want the size of the input and the level", log.Status, log.Body)
	}
	file := c.Call(http.MethodGet, "/download/"+run.TaskID, "")
	if string(file.Body) != "<b>bold</b>" || file.Header.Get("Content-Type") != "text/html" || !strings.HasPrefix(file.Header.Get("Content-Disposition"), "attachment") {
		c.T.Errorf("got %d %q as %q, %q, want the file as an attachment", file.Status, file.Body, file.Header.Get("Content-Type"), file.Header.Get("Content-Disposition"))
	}
}

// programFollowed reads the output over as many connections as the target needs.
func programFollowed(c *Case) {
	run := c.startProgram(script("echo one; echo two >&2; sleep 3; echo three"))
	path, text := "/v1/tasks/"+run.TaskID+"/logs?attempt=1&stream=stdout&follow=true&offset=", ""
	for ended, tries := false, 0; !ended; tries++ {
		answer := c.Call(http.MethodGet, path+strconv.Itoa(len(text)), "")
		if answer.Status != http.StatusOK || answer.Header.Get("X-Attempt") != "1" || tries == 100 {
			c.T.Fatalf("got %d %s after %d answers and %q, want the end", answer.Status, answer.Body, tries, text)
		}
		text += string(answer.Body)
		ended = answer.Header.Get("X-Log-Ended") == "true"
	}
	if text != "one\nthree\n" {
		c.T.Errorf("got standard output %q, want one and three", text)
	}
	if state := c.ended(run).State; state != "Completed" {
		c.T.Errorf("got %s, want Completed", state)
	}
	if log := c.Call(http.MethodGet, "/v1/tasks/"+run.TaskID+"/logs?stream=stderr", ""); string(log.Body) != "two\n" {
		c.T.Errorf("got standard error %d %q, want two", log.Status, log.Body)
	}
}

func programOnce(c *Case) {
	body, key := string(outside.Encode(c.T, script("true"))), c.Batch("key")
	first := c.Call(http.MethodPost, "/v1/runs", body, "Idempotency-Key", key)
	second := c.Call(http.MethodPost, "/v1/runs", body, "Idempotency-Key", key)
	one, two := outside.Decode[contract.RunAccepted](c.T, first.Body), outside.Decode[contract.RunAccepted](c.T, second.Body)
	c.tasks.add(one.TaskID)
	if first.Status != http.StatusAccepted || second.Status != http.StatusOK || one.TaskID != two.TaskID {
		c.T.Errorf("got %d %s and %d %s, want 202 and 200 of one run", first.Status, first.Body, second.Status, second.Body)
	}
	other := c.Call(http.MethodPost, "/v1/runs", string(outside.Encode(c.T, script("false"))), "Idempotency-Key", key)
	if other.Status != http.StatusUnprocessableEntity || other.Problem(c.T).Code != "IDEMPOTENCY_MISMATCH" {
		c.T.Errorf("got %d %s for another program, want 422 IDEMPOTENCY_MISMATCH", other.Status, other.Body)
	}
}

func programOfTheHost(c *Case) {
	body, err := json.Marshal(document{"image": "exec:/bin/true"})
	if err != nil {
		c.T.Fatal(err)
	}
	answer := c.Call(http.MethodPost, "/v1/runs", string(body))
	if answer.Status != http.StatusUnprocessableEntity || answer.Problem(c.T).Code != "RUNNER_NOT_ALLOWED" {
		c.T.Errorf("got %d %s, want 422 RUNNER_NOT_ALLOWED", answer.Status, answer.Body)
	}
}
