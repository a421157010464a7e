package suite

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

func callbacks() []Test {
	return []Test{
		{Name: "a callback counts once", Needs: []Capability{Plays}, Run: callbackOnce},
		{Name: "a callback is for its own task", Needs: []Capability{Plays}, Run: ownTask},
		{Name: "a callback of an attempt that is over is refused", Needs: []Capability{Plays}, Run: overAttempt},
		{Name: "an output of another task is refused", Needs: []Capability{Plays}, Run: othersOutput},
	}
}

// told is the path and query of a CALLBACK_URL that a worker has left in a file.
func (c *Case) told(file string) (path string) {
	c.T.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		if text, err := os.ReadFile(file); err == nil {
			return strings.TrimPrefix(string(text), c.URL)
		}
		select {
		case <-look.C:
		case <-c.T.Context().Done():
			c.T.Fatal("the worker has told nothing")
		}
	}
}

// workerOf begins a run whose worker waits, while the test calls in its name.
func (c *Case) workerOf(name string, policy ...contract.Policy) (task, path, hold string) {
	c.T.Helper()
	file, hold := filepath.Join(c.T.TempDir(), "url"), Pipe(c.T)
	task = c.Play(name, "tell:"+file+" wait:"+hold, policy...)
	return task, c.told(file), hold
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
	task, path, hold := c.workerOf("one")
	const failed = `{"status":"error","error":"first"}`
	for range 2 {
		if status, p := c.asWorker(path, failed); status != http.StatusOK {
			c.T.Errorf("it is answered %d %+v", status, p)
		}
	}
	Release(c.T, hold)
	if status, p := c.asWorker(path, `{"status":"success"}`); status != http.StatusConflict || p.Error != contract.ErrorTaskAlreadyTerminal || p.State != "FAILED" {
		c.T.Errorf("the contrary is answered %d %+v", status, p)
	}
	if status := c.End(task); status.Error != "first" || status.Attempt != 1 {
		c.T.Errorf("it ended as %+v", status)
	}
	c.Events(task)
}

func ownTask(c *Case) {
	task, path, hold := c.workerOf("one")
	_, other, otherHold := c.workerOf("other")
	place, _, _ := strings.Cut(path, "?")
	_, token, _ := strings.Cut(other, "?")
	const success = `{"status":"success"}`
	for name, row := range map[string]struct {
		path string
		want int
	}{
		"no token":          {place, http.StatusUnauthorized},
		"nonsense":          {place + "?token=nonsense", http.StatusUnauthorized},
		"a bent signature":  {path + "x", http.StatusUnauthorized},
		"another's token":   {place + "?" + token, http.StatusForbidden},
		"the client's own":  {place + "?token=" + c.Token, http.StatusUnauthorized},
		"an unknown task's": {"/callback/export_mods_1_00000000?" + token, http.StatusForbidden},
	} {
		if status, p := c.asWorker(row.path, success); status != row.want {
			c.T.Errorf("%s: %d %+v", name, status, p)
		}
	}
	if answer := c.Call(http.MethodGet, "/status/"+task, "", "Authorization", "Bearer "+strings.TrimPrefix(token, "token="), "X-Forwarded-For", "203.0.113.7"); answer.Status != http.StatusUnauthorized {
		c.T.Errorf("a worker's token lets a client in: %d", answer.Status)
	}
	if status := c.Await(task, func(contract.Status) bool { return true }); status.Status != contract.StatusProcessing {
		c.T.Errorf("somebody was let in: %+v", status)
	}
	for _, each := range []string{path, other} {
		if status, p := c.asWorker(each, success); status != http.StatusOK {
			c.T.Errorf("its own token: %d %+v", status, p)
		}
	}
	Release(c.T, hold)
	Release(c.T, otherHold)
	c.End(task)
}

func overAttempt(c *Case) {
	policy := tries(2)
	policy.TimeLimitSeconds = new(3)
	policy.CancelGraceSeconds = new(1)
	file, hold, mark := filepath.Join(c.T.TempDir(), "url"), Pipe(c.T), filepath.Join(c.T.TempDir(), "mark")
	task := c.Play("one", "once:"+mark+" tell:"+file+" wait:"+hold, policy)
	path := c.told(file)
	c.Await(task, func(s contract.Status) bool { return s.Attempt == 2 && s.State == "Running" })
	status, p := c.asWorker(path, `{"status":"success"}`)
	if status != http.StatusConflict || p.Error != contract.ErrorAttemptMismatch || p.ExpectedAttempt != 2 || p.ReceivedAttempt != 1 {
		c.T.Errorf("the first attempt's callback is answered %d %+v", status, p)
	}
	if status := c.End(task); status.ErrorCode != "RUN_TIMEOUT" || status.Attempt != 2 {
		c.T.Errorf("it ended as %+v", status)
	}
	c.Events(task)
}

func othersOutput(c *Case) {
	task, path, hold := c.workerOf("one", tries(1))
	for _, key := range []string{"exports/another/a.xml", "a.xml", "exports/" + task + "/../another/a.xml", "exports/" + task} {
		body := `{"status":"success","output_r2_key":"` + key + `","output_file_name":"a.xml","output_file_size":3}`
		if status, p := c.asWorker(path, body); status != http.StatusBadRequest || p.Field != "output_r2_key" {
			c.T.Errorf("%s is answered %d %+v", key, status, p)
		}
	}
	absent := `{"status":"success","output_r2_key":"exports/` + task + `/absent.xml","output_file_name":"a.xml","output_file_size":3}`
	if status, p := c.asWorker(path, absent); status != http.StatusOK {
		c.T.Errorf("an output that may still be seen is answered %d %+v", status, p)
	}
	Release(c.T, hold)
	if status := c.End(task); status.Status != contract.StatusError || !strings.Contains(status.ErrorCode, "OUTPUT") {
		c.T.Errorf("without its output it ended as %+v", status)
	}
}
