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

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/contract"
)

func exports() []Test {
	list := []Test{
		{Name: "an export ends in a file", Needs: []Capability{AnySource}, Run: anyExport},
		{Name: "a missing root is the contract's error", Needs: []Capability{SampleSource}, Run: missingRoot},
		{Name: "a worker that only calls back is a worker", Needs: []Capability{Plays}, Run: onlyCallsBack},
		{Name: "bash and curl are a worker", Needs: []Capability{Plays, Bash}, Run: bashAndCurl},
		{Name: "a waiting status is answered at the change", Needs: []Capability{Plays}, Run: waitsForChange},
	}
	for _, format := range []string{"mods", "dc", "marcxml"} {
		list = append(list, Test{
			Name: "the sample as " + format + " is the same file everywhere", Needs: []Capability{SampleSource},
			Run: func(c *Case) { sample(c, format) },
		})
	}
	return list
}

// sample exports the sample and holds the file to the one that the worker makes
// in this process.
func sample(c *Case, format string) {
	want := inProcess(c.T, format)
	task := c.Export(format, contract.ExportRequest{
		PI: samples.SampleRoot, Options: &contract.ExportOptions{Recursive: new(true)}, BatchID: c.Batch("one"),
	})
	c.tasks.add(task)
	status := c.End(task)
	if status.Status != contract.StatusSuccess || status.State != "Completed" || status.Attempt != 1 || status.Format != format {
		c.T.Fatalf("it ended as %+v", status)
	}
	file := c.Call(http.MethodGet, "/download/"+task, "")
	if file.Status != http.StatusOK || file.Header.Get("Content-Type") != "application/xml" ||
		!strings.Contains(file.Header.Get("Content-Disposition"), samples.SampleRoot+"-collection.xml") {
		c.T.Errorf("GET /download: %d %v", file.Status, file.Header)
	}
	if !bytes.Equal(file.Body, want) || int64(len(want)) != *status.OutputFileSize {
		c.T.Errorf("the file has %d bytes, and the worker makes %d others", len(file.Body), len(want))
	}
	var types []string
	for _, e := range c.Events(task) {
		types = append(types, strings.TrimPrefix(e.Type, "job."))
	}
	told := strings.Replace(strings.Join(types, " "), "queued admitted", "admitted", 1) // where others have the machines
	if !strings.HasPrefix(told, "accepted admitted ") || !strings.Contains(told, "started ") || !strings.Contains(told, " attempt_ended completed") {
		c.T.Errorf("its events are %s", told)
	}
}

// anyExport is what can be asked of a worker whose source is not known.
func anyExport(c *Case) {
	task := c.Begin("one", contract.ExportRequest{PI: c.Target.Root})
	status := c.End(task)
	if status.Status != contract.StatusSuccess || status.State != "Completed" {
		c.T.Fatalf("it ended as %+v", status)
	}
	c.Events(task)
	file := c.Call(http.MethodGet, "/download/"+task, "")
	if file.Status == http.StatusFound && *status.OutputFileSize > mostStreamed {
		return
	}
	if file.Status != http.StatusOK || int64(len(file.Body)) != *status.OutputFileSize {
		c.T.Errorf("GET /download: %d with %d bytes of %d", file.Status, len(file.Body), *status.OutputFileSize)
	}
	for document := xml.NewDecoder(bytes.NewReader(file.Body)); ; {
		if _, err := document.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			c.T.Fatalf("the document is not well-formed: %v", err)
		}
	}
}

func missingRoot(c *Case) {
	const nobody = "01K9XVBAQZF9EHDRXGBEADTZZZ"
	status := c.End(c.Begin("one", contract.ExportRequest{PI: nobody}))
	if status.Status != contract.StatusError || status.Error != "Failed to fetch manifest for PI "+nobody+": 404 Not Found" ||
		status.ErrorCode != "WORKER_ERROR" || status.Attempt != 1 {
		c.T.Errorf("it ended as %+v", status)
	}
	answer := c.Call(http.MethodGet, "/download/"+status.TaskID, "")
	if answer.Status != http.StatusBadRequest || !bytes.Contains(answer.Body, []byte("Export not ready or failed")) {
		c.T.Errorf("GET /download: %d %s", answer.Status, answer.Body)
	}
}

func onlyCallsBack(c *Case) {
	if status := c.End(c.Play("success", "success")); status.Status != contract.StatusSuccess || status.OutputKey != "" {
		c.T.Errorf("it ended as %+v", status)
	}
	status := c.End(c.Play("error", "error"))
	if status.Status != contract.StatusError || status.Error != "Failed on purpose" || status.Attempt != 1 {
		c.T.Errorf("it ended as %+v", status)
	}
}

// curlWorker is a whole worker, as the export contract has it.
const curlWorker = `set -eu
curl -sS --fail -X POST -H 'Content-Type: application/json' \
  -d "{\"task_id\":\"$TASK_ID\",\"batch_id\":\"$BATCH_ID\",\"status\":\"success\",\"metrics\":{\"shell\":true}}" "$CALLBACK_URL"
`

func bashAndCurl(c *Case) {
	script := filepath.Join(c.T.TempDir(), "worker.sh")
	if err := os.WriteFile(script, []byte(curlWorker), 0o600); err != nil {
		c.T.Fatal(err)
	}
	status := c.End(c.Play("one", "bash:"+script))
	if status.Status != contract.StatusSuccess || string(status.Metrics) != `{"shell":true}` {
		c.T.Errorf("it ended as %+v", status)
	}
}

func waitsForChange(c *Case) {
	hold := Pipe(c.T)
	task := c.Play("one", "wait:"+hold+" success")
	c.Running(task)
	before := c.Call(http.MethodGet, "/status/"+task, "")
	tag := before.Header.Get("Etag")
	if answer := c.Call(http.MethodGet, "/status/"+task, "", "If-None-Match", tag); answer.Status != http.StatusNotModified || tag == "" {
		c.T.Errorf("what the client has is answered %d", answer.Status)
	}
	if again := c.Call(http.MethodGet, "/status/"+task+"?wait=1", ""); !bytes.Equal(before.Body, again.Body) {
		c.T.Errorf("without a change it was %s and is %s", before.Body, again.Body)
	}
	Release(c.T, hold)
	status := c.End(task) // which waits for each change
	if status.Status != contract.StatusSuccess {
		c.T.Errorf("it ended as %+v", status)
	}
	if answer := c.Call(http.MethodGet, "/status/"+task, "", "If-None-Match", tag); answer.Status != http.StatusOK {
		c.T.Errorf("a change is answered %d", answer.Status)
	}
}
