package suite

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func workerCalls() []Test {
	return []Test{
		{Name: "unusable optional fields cost no result", Requires: []Capability{ScriptedWorkers}, Run: lenientBodies},
		{Name: "refused heartbeat is a sign of life", Requires: []Capability{ScriptedWorkers}, Run: refusedHeartbeats},
	}
}

// workerOf is the waiting worker of a machine. The test sends its calls.
type workerOf struct {
	*Case
	task, hold string
	envelope   contract.TaskEnvelope
}

// startWorker starts a run whose worker waits.
func (c *Case) startWorker(policy ...contract.Policy) workerOf {
	c.T.Helper()
	w := workerOf{Case: c, hold: scripts.Pipe(c.T)}
	file := filepath.Join(c.T.TempDir(), "envelope")
	w.task = c.StartScripted("one", "envelope:"+file+" wait:"+w.hold, policy...)
	if err := json.Unmarshal(c.awaitFile("envelope from the worker", file), &w.envelope); err != nil {
		c.T.Fatalf("malformed envelope: %v", err)
	}
	return w
}

// awaitFile waits until a worker has written a file, and returns its text. A run may wait long
// for its machine.
func (c *Case) awaitFile(what, file string) (text []byte) {
	c.T.Helper()
	c.eventually(what, func() bool {
		var err error
		text, err = os.ReadFile(file)
		return err == nil
	})
	return text
}

// call sends a call with the required fields and more. It requires the status.
func (w workerOf) call(name, more string, status int) {
	w.T.Helper()
	body := fmt.Sprintf(`{"attempt":%d,"workerId":"w"%s}`, w.envelope.Attempt, more)
	answer := w.Call(http.MethodPost, "/v1/tasks/"+w.task+"/"+name, body, "Authorization", "Bearer "+w.envelope.TaskToken)
	if answer.Status != status {
		w.T.Errorf("%s %s: got %d %s, want %d", name, more, answer.Status, answer.Body, status)
	}
}

func lenientBodies(c *Case) {
	w := c.startWorker()
	w.call("started", `,"startedAt":"2026-01-02T03:04:05.123456","handlesSigterm":"no"`, http.StatusOK)
	w.call("heartbeat", `,"heartbeatAt":"","progressPct":45.5,"message":["half"]`, http.StatusOK)
	halfway := func(s contract.Status) bool { return s.Progress != nil }
	if status := c.Await(w.task, halfway); status.Progress == nil || status.Progress.Percent == nil || *status.Progress.Percent != 46 {
		c.T.Errorf("got progress %+v, want 46 percent", status.Progress)
	}
	w.call("completed", `,"outcome":"SUCCEEDED","completedAt":"2026-12-31T23:59:60Z","metrics":[1],"output":{"rowCount":"many"}`, http.StatusOK)
	scripts.Release(c.T, w.hold)
	if status := c.End(w.task); status.State != "Completed" || status.Attempt != 1 {
		c.T.Errorf("got %+v, want Completed in attempt 1", status)
	}
}

func refusedHeartbeats(c *Case) {
	policy := tries(1)
	policy.HeartbeatIntervalSeconds, policy.HeartbeatTimeoutSeconds = new(1), new(10)
	w := c.startWorker(policy)
	w.call("started", "", http.StatusOK)
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for range 15 {
		<-each.C
		w.call("heartbeat", `,"workerId":"twice"`, http.StatusBadRequest)
	}
	w.call("completed", `,"outcome":"SUCCEEDED"`, http.StatusOK)
	scripts.Release(c.T, w.hold)
	if status := c.End(w.task); status.State != "Completed" {
		c.T.Errorf("got %+v, want Completed", status)
	}
}
