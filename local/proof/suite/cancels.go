package suite

import (
	"net/http"
	"path/filepath"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func cancels() []Test {
	return []Test{
		{Name: "deaf worker is killed after a cancel", Requires: []Capability{ScriptedWorkers}, Run: cancelDeaf},
		{Name: "worker that ends in its grace is cancelled", Requires: []Capability{ScriptedWorkers}, Run: cancelObedient},
		{Name: "worker that exits with 137 by itself is cancelled", Requires: []Capability{ScriptedWorkers}, Run: cancelOwnExit},
		{Name: "acknowledged success wins over a cancel", Requires: []Capability{ScriptedWorkers}, Run: cancelTooLate},
		{Name: "cancel of a task that has ended is too late", Requires: []Capability{AnySource}, Run: cancelEnded},
	}
}

// cancel requests the cancellation of a task.
func (c *Case) cancel(task string, status int) contract.CancelAnswer {
	c.T.Helper()
	answer := c.Call(http.MethodPost, "/v1/tasks/"+task+"/cancel", "{}")
	if answer.Status != status {
		c.T.Errorf("cancel of %s: got %d %s, want %d", task, answer.Status, answer.Body, status)
	}
	return outside.Decode[contract.CancelAnswer](c.T, answer.Body)
}

// grace returns a policy with a cancel grace in seconds.
func grace(seconds int) contract.Policy { return contract.Policy{CancelGraceSeconds: &seconds} }

// cancelEnd checks the end of a cancelled task and returns the exit of its
// machine.
func (c *Case) cancelEnd(task, state, code string) (exit contract.Exit) {
	c.T.Helper()
	if status := c.End(task); status.State != state || status.ErrorCode != code || status.Attempt != 1 {
		c.T.Errorf("got %+v, want %s with %s in attempt 1", status, state, code)
	}
	c.Events(task)
	machine := outside.Get[contract.Task](c.Client, "/v1/tasks/"+task).Machine
	if machine == nil || machine.Exit == nil {
		c.T.Fatalf("got machine %+v, want one with an exit", machine)
	}
	return *machine.Exit
}

func cancelDeaf(c *Case) {
	file := filepath.Join(c.T.TempDir(), "url")
	task := c.StartScripted("one", "deaf url:"+file+" wait:"+scripts.Pipe(c.T), grace(2))
	c.awaitCallbackURL(file)
	c.Running(task)
	if answer := c.cancel(task, http.StatusAccepted); answer.Result != contract.CancelRequested {
		c.T.Errorf("got %+v, want requested", answer)
	}
	if exit := c.cancelEnd(task, "Failed", "CANCEL_TIMEOUT"); exit.Signal != 9 || exit.OOM {
		c.T.Errorf("got exit %+v, want signal 9", exit)
	}
	if answer := c.cancel(task, http.StatusOK); answer.State != "Failed" || answer.Result != contract.CancelDone {
		c.T.Errorf("got %+v for a repeated cancel, want the Failed task", answer)
	}
}

func cancelObedient(c *Case) {
	task, _, _ := c.startWaiting("one", grace(20))
	c.Running(task)
	c.cancel(task, http.StatusAccepted)
	if exit := c.cancelEnd(task, "Cancelled", "CANCELLED"); exit.Signal != 15 {
		c.T.Errorf("got exit %+v, want signal 15", exit)
	}
}

func cancelOwnExit(c *Case) {
	file, hold := filepath.Join(c.T.TempDir(), "url"), scripts.Pipe(c.T)
	task := c.StartScripted("one", "deaf url:"+file+" wait:"+hold+" exit:137", grace(60))
	c.awaitCallbackURL(file)
	c.Running(task)
	c.cancel(task, http.StatusAccepted)
	scripts.Release(c.T, hold)
	if exit := c.cancelEnd(task, "Cancelled", "CANCELLED"); exit.Code != 137 || exit.Signal != 0 {
		c.T.Errorf("got exit %+v, want code 137 without a signal", exit)
	}
}

func cancelTooLate(c *Case) {
	task, path, hold := c.startWaiting("one")
	const success = `{"status":"success"}`
	for range 2 {
		if status, p := c.asWorker(path, success); status != http.StatusOK {
			c.T.Errorf("callback: got %d %+v, want 200", status, p)
		}
		if answer := c.cancel(task, http.StatusOK); answer.Result != contract.CancelTooLate {
			c.T.Errorf("got %+v after an acknowledged success, want too_late", answer)
		}
	}
	scripts.Release(c.T, hold)
	if status := c.End(task); status.State != "Completed" {
		c.T.Errorf("got %+v, want Completed", status)
	}
	if status, p := c.asWorker(path, success); status != http.StatusOK {
		c.T.Errorf("repeated callback: got %d %+v, want 200", status, p)
	}
	c.Events(task)
}

func cancelEnded(c *Case) {
	task := c.StartShort("one")
	if status := c.End(task); status.State != "Completed" {
		c.T.Fatalf("got %+v, want Completed", status)
	}
	if answer := c.cancel(task, http.StatusOK); answer.Result != contract.CancelTooLate || answer.State != "Completed" {
		c.T.Errorf("got %+v, want too_late", answer)
	}
}
