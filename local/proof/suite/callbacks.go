package suite

import (
	"net/http"
	"path/filepath"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func callbacks() []Test {
	return []Test{
		{Name: "repeated callback is idempotent", Requires: []Capability{ScriptedWorkers}, Run: callbackOnce},
		{Name: "callback token is valid for one task only", Requires: []Capability{ScriptedWorkers}, Run: callbackOfOtherTask},
		{Name: "callback of an earlier attempt is refused", Requires: []Capability{ScriptedWorkers}, Run: callbackOfEarlierAttempt},
		{Name: "callback names its own task and batch", Requires: []Capability{ScriptedWorkers}, Run: callbackNames},
		{Name: "output key of another task is refused", Requires: []Capability{ScriptedWorkers}, Run: outputOfOtherTask},
	}
}

// awaitCallbackURL waits until a worker has written its CALLBACK_URL to the
// file, and returns the URL's path and query.
func (c *Case) awaitCallbackURL(file string) (path string) {
	c.T.Helper()
	return strings.TrimPrefix(string(c.awaitFile("callback URL from the worker", file)), c.URL)
}

// startWaiting starts a run whose worker waits at the pipe hold, so that the test can send the
// worker's calls to path.
func (c *Case) startWaiting(name string, policy ...contract.Policy) (task, path, hold string) {
	c.T.Helper()
	file, hold := filepath.Join(c.T.TempDir(), "url"), scripts.Pipe(c.T)
	task = c.StartScripted(name, "url:"+file+" wait:"+hold, policy...)
	return task, c.awaitCallbackURL(file), hold
}

// asWorker posts a callback without the client's token.
func (c *Case) asWorker(path, body string) (int, contract.Problem) {
	c.T.Helper()
	answer := c.Call(http.MethodPost, path, body, "Authorization", "")
	if answer.Status == http.StatusOK {
		return answer.Status, contract.Problem{}
	}
	return answer.Status, answer.Problem(c.T)
}

func callbackOnce(c *Case) {
	task, path, hold := c.startWaiting("one")
	const failed = `{"status":"error","error":"first"}`
	for range 2 {
		if status, p := c.asWorker(path, failed); status != http.StatusOK {
			c.T.Errorf("callback: got %d %+v, want 200", status, p)
		}
	}
	scripts.Release(c.T, hold)
	if status, p := c.asWorker(path, `{"status":"success"}`); status != http.StatusConflict || p.Error != contract.ErrorTaskAlreadyTerminal || p.State != "FAILED" {
		c.T.Errorf("contradicting callback: got %d %+v, want 409 task_already_terminal of a FAILED attempt", status, p)
	}
	if status := c.End(task); status.Error != "first" || status.Attempt != 1 {
		c.T.Errorf("got %+v, want the first error after one attempt", status)
	}
	c.Events(task)
}

func callbackOfOtherTask(c *Case) {
	task, path, hold := c.startWaiting("one")
	_, other, otherHold := c.startWaiting("other")
	place, _, _ := strings.Cut(path, "?")
	_, token, _ := strings.Cut(other, "?")
	const success = `{"status":"success"}`
	for name, row := range map[string]struct {
		path string
		want int
	}{
		"no token":                  {place, http.StatusUnauthorized},
		"nonsense":                  {place + "?token=nonsense", http.StatusUnauthorized},
		"an altered signature":      {path + "x", http.StatusUnauthorized},
		"the token of another task": {place + "?" + token, http.StatusForbidden},
		"the client's token":        {place + "?token=" + c.Token, http.StatusUnauthorized},
		"an unknown task":           {"/callback/export_mods_1_00000000?" + token, http.StatusForbidden},
	} {
		if status, p := c.asWorker(row.path, success); status != row.want {
			c.T.Errorf("%s: got %d %+v, want %d", name, status, p, row.want)
		}
	}
	if answer := c.Call(http.MethodGet, "/status/"+task, "", "Authorization", "Bearer "+strings.TrimPrefix(token, "token="), "X-Forwarded-For", "203.0.113.7"); answer.Status != http.StatusUnauthorized {
		c.T.Errorf("GET /status with a worker's token: got %d, want 401", answer.Status)
	}
	if status := c.Await(task, func(contract.Status) bool { return true }); status.Status != contract.StatusProcessing {
		c.T.Errorf("got %+v after refused callbacks, want processing", status)
	}
	for _, each := range []string{path, other} {
		if status, p := c.asWorker(each, success); status != http.StatusOK {
			c.T.Errorf("the task's own token: got %d %+v, want 200", status, p)
		}
	}
	scripts.Release(c.T, hold)
	scripts.Release(c.T, otherHold)
	c.End(task)
}

func callbackOfEarlierAttempt(c *Case) {
	dir := c.T.TempDir()
	file, first, second := filepath.Join(dir, "url"), scripts.Pipe(c.T), scripts.Pipe(c.T)
	task := c.StartScripted("one", strings.Join([]string{
		"once:" + filepath.Join(dir, "begun"), "url:" + file, "wait:" + first,
		"once:" + filepath.Join(dir, "ended"), "exit:3", "wait:" + second, "error",
	}, " "), tries(2))
	path := c.awaitCallbackURL(file)
	scripts.Release(c.T, first)
	c.Await(task, func(s contract.Status) bool { return s.Attempt == 2 && s.State == "Running" })
	status, p := c.asWorker(path, `{"status":"success"}`)
	if status != http.StatusConflict || p.Error != contract.ErrorAttemptMismatch || p.ExpectedAttempt != 2 || p.ReceivedAttempt != 1 {
		c.T.Errorf("callback of attempt 1: got %d %+v, want 409 attempt_mismatch", status, p)
	}
	scripts.Release(c.T, second)
	if status := c.End(task); status.Status != contract.StatusError || status.Error != "Failed on purpose" || status.Attempt != 2 {
		c.T.Errorf("got %+v, want the error that attempt 2 reported", status)
	}
	c.Events(task)
}

func callbackNames(c *Case) {
	task, path, hold := c.startWaiting("one")
	for _, other := range []string{`"task_id":"export_mods_1_00000000"`, `"batch_id":"another"`, `"batch_id":"single"`} {
		if status, p := c.asWorker(path, `{"status":"success",`+other+`}`); status != http.StatusConflict || p.Error != contract.ErrorTaskMismatch {
			c.T.Errorf("callback with %s: got %d %+v, want 409 task_mismatch", other, status, p)
		}
	}
	own := `{"status":"success","task_id":"` + task + `","batch_id":"` + c.Batch("one") + `"}`
	if status, p := c.asWorker(path, own); status != http.StatusOK {
		c.T.Errorf("callback with its own ids: got %d %+v, want 200", status, p)
	}
	scripts.Release(c.T, hold)
	c.End(task)
}

func outputOfOtherTask(c *Case) {
	task, path, hold := c.startWaiting("one", tries(1))
	for _, key := range []string{"exports/another/a.xml", "a.xml", "exports/" + task + "/../another/a.xml", "exports/" + task} {
		body := `{"status":"success","output_r2_key":"` + key + `","output_file_name":"a.xml","output_file_size":3}`
		if status, p := c.asWorker(path, body); status != http.StatusBadRequest || p.Field != "output_r2_key" {
			c.T.Errorf("output key %s: got %d %+v, want 400 for output_r2_key", key, status, p)
		}
	}
	absent := `{"status":"success","output_r2_key":"exports/` + task + `/absent.xml","output_file_name":"a.xml","output_file_size":3}`
	if status, p := c.asWorker(path, absent); status != http.StatusOK {
		c.T.Errorf("output that may become visible later: got %d %+v, want 200", status, p)
	}
	scripts.Release(c.T, hold)
	if status := c.End(task); status.Status != contract.StatusError || !strings.Contains(status.ErrorCode, "OUTPUT") {
		c.T.Errorf("missing output: got %+v, want an error code with OUTPUT", status)
	}
}
