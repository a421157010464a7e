package suite

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func exports() []Test {
	list := []Test{
		{Name: "export produces a file", Requires: []Capability{AnySource}, Run: anyExport},
		{Name: "machine's id is the platform's", Requires: []Capability{AnySource, SeeMachines}, Run: machineID},
		{Name: "missing root fails with the contract's error", Requires: []Capability{SampleSource}, Run: missingRoot},
		{Name: "worker needs only the callback", Requires: []Capability{ScriptedWorkers}, Run: onlyCallsBack},
		{Name: "worker in bash and curl", Requires: []Capability{ScriptedWorkers, Bash}, Run: bashAndCurl},
		{Name: "status long poll returns on a change", Requires: []Capability{ScriptedWorkers}, Run: waitsForChange},
	}
	for _, format := range limit.Formats() {
		list = append(list, Test{
			Name: "sample as " + format + " equals the reference file", Requires: []Capability{SampleSource},
			Run: func(c *Case) { sample(c, format) },
		})
	}
	return list
}

// sample exports the sample collection and compares the file with the output of the worker
// called in this process.
func sample(c *Case, format string) {
	want := outside.Reference(c.T, format)
	task := c.Export(format, contract.ExportRequest{
		PI: samples.SampleRoot, Options: &contract.ExportOptions{Recursive: new(true)}, BatchID: new(c.Batch("one")),
	})
	c.tasks.add(task)
	status := c.End(task)
	if status.Status != contract.StatusSuccess || status.State != "Completed" || status.Attempt != 1 || status.Format != format {
		c.T.Fatalf("got %+v, want success in one attempt", status)
	}
	file := c.Call(http.MethodGet, "/download/"+task, "")
	if file.Status != http.StatusOK || file.Header.Get("Content-Type") != "application/xml" ||
		!strings.Contains(file.Header.Get("Content-Disposition"), samples.SampleRoot+"-collection.xml") {
		c.T.Errorf("GET /download: got %d %v, want an XML attachment", file.Status, file.Header)
	}
	if !bytes.Equal(file.Body, want) || int64(len(want)) != *status.OutputFileSize {
		c.T.Errorf("got a file of %d bytes, want the reference file of %d bytes", len(file.Body), len(want))
	}
	var types []string
	for _, e := range c.Events(task) {
		types = append(types, strings.TrimPrefix(e.Type, "job."))
	}
	events := strings.Replace(strings.Join(types, " "), "queued admitted", "admitted", 1) // other tests may hold all slots
	if !strings.HasPrefix(events, "accepted admitted ") || !strings.Contains(events, "started ") || !strings.Contains(events, " attempt_ended completed") {
		c.T.Errorf("got events %s, want accepted admitted … started … attempt_ended completed", events)
	}
}

// anyExport checks properties that hold for every source.
func anyExport(c *Case) {
	task := c.Start("one", contract.ExportRequest{PI: c.Target.Root})
	status := c.End(task)
	if status.Status != contract.StatusSuccess || status.State != "Completed" {
		c.T.Fatalf("got %+v, want success", status)
	}
	c.Events(task)
	file := c.Call(http.MethodGet, "/download/"+task, "")
	if file.Status == http.StatusFound && *status.OutputFileSize > maxStreamed {
		return
	}
	if file.Status != http.StatusOK || int64(len(file.Body)) != *status.OutputFileSize {
		c.T.Errorf("GET /download: got %d with %d bytes, want 200 with %d bytes", file.Status, len(file.Body), *status.OutputFileSize)
	}
	for document := xml.NewDecoder(bytes.NewReader(file.Body)); ; {
		if _, err := document.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			c.T.Fatalf("malformed document: %v", err)
		}
	}
}

func machineID(c *Case) {
	status := c.End(c.StartShort("one"))
	task := outside.Get[contract.Task](c.Client, "/v1/tasks/"+status.TaskID)
	if task.Machine == nil || task.Machine.ID != status.MachineID {
		c.T.Errorf("got machine %+v, want the id of /status, %q", task.Machine, status.MachineID)
	}
	for _, m := range c.awaitMachines(status.TaskID, 1) {
		if m.ID == status.MachineID {
			return
		}
	}
	c.T.Errorf("got machine id %q, want one that the platform has", status.MachineID)
}

func missingRoot(c *Case) {
	const missing = "01K9XVBAQZF9EHDRXGBEADTZZZ"
	status := c.End(c.Start("one", contract.ExportRequest{PI: missing}))
	if status.Status != contract.StatusError || status.Error != "Failed to fetch manifest for PI "+missing+": 404 Not Found" ||
		status.ErrorCode != "WORKER_ERROR" || status.Attempt != 1 {
		c.T.Errorf("got %+v, want the worker's error in attempt 1", status)
	}
	answer := c.Call(http.MethodGet, "/download/"+status.TaskID, "")
	if answer.Status != http.StatusBadRequest || !bytes.Contains(answer.Body, []byte("Export not ready or failed")) {
		c.T.Errorf("GET /download: got %d %s, want 400", answer.Status, answer.Body)
	}
}

func onlyCallsBack(c *Case) {
	if status := c.End(c.StartScripted("success", "success")); status.Status != contract.StatusSuccess || status.OutputKey != "" {
		c.T.Errorf("got %+v, want success without an output", status)
	}
	status := c.End(c.StartScripted("error", "error"))
	if status.Status != contract.StatusError || status.Error != "Failed on purpose" || status.Attempt != 1 {
		c.T.Errorf("got %+v, want the worker's error in attempt 1", status)
	}
}

// curlWorker is a complete worker under the export contract.
const curlWorker = `set -eu
curl -sS --fail -X POST -H 'Content-Type: application/json' \
  -d "{\"task_id\":\"$TASK_ID\",\"batch_id\":\"$BATCH_ID\",\"status\":\"success\",\"metrics\":{\"shell\":true}}" "$CALLBACK_URL"
`

func bashAndCurl(c *Case) {
	script := filepath.Join(c.T.TempDir(), "worker.sh")
	if err := os.WriteFile(script, []byte(curlWorker), 0o600); err != nil {
		c.T.Fatal(err)
	}
	status := c.End(c.StartScripted("one", "bash:"+script))
	if status.Status != contract.StatusSuccess || string(status.Metrics) != `{"shell":true}` {
		c.T.Errorf("got %+v, want success with the worker's metrics", status)
	}
}

func waitsForChange(c *Case) {
	hold := scripts.Pipe(c.T)
	task := c.StartScripted("one", "wait:"+hold+" success")
	c.Running(task)
	before := c.Call(http.MethodGet, "/status/"+task, "")
	tag := before.Header.Get("Etag")
	if answer := c.Call(http.MethodGet, "/status/"+task, "", "If-None-Match", tag); answer.Status != http.StatusNotModified || tag == "" {
		c.T.Errorf("If-None-Match of the current status: got %d, want 304", answer.Status)
	}
	if again := c.Call(http.MethodGet, "/status/"+task+"?wait=1", ""); !bytes.Equal(before.Body, again.Body) {
		c.T.Errorf("got %[2]s without a change, want %[1]s", before.Body, again.Body)
	}
	scripts.Release(c.T, hold)
	status := c.End(task) // uses the long poll
	if status.Status != contract.StatusSuccess {
		c.T.Errorf("got %+v, want success", status)
	}
	if answer := c.Call(http.MethodGet, "/status/"+task, "", "If-None-Match", tag); answer.Status != http.StatusOK {
		c.T.Errorf("If-None-Match of an older status: got %d, want 200", answer.Status)
	}
}
