package stack_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/collection"
	"github.com/sortie-dev/sortie/local/stack"
	"github.com/sortie-dev/sortie/shared/adapter/clock"
	"github.com/sortie-dev/sortie/shared/contract"
)

// records counts the MODS records of a document, which has to be well-formed.
func records(t *testing.T, document []byte) int {
	t.Helper()
	count := 0
	decoder := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := decoder.Token()
		if token == nil {
			if err != nil && err.Error() != "EOF" {
				t.Fatalf("the document is not well-formed: %v", err)
			}
			return count
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "mods" {
			count++
		}
	}
}

func TestASampleExportEndsInItsFile(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	task := g.post(`{"recursive":true}`)
	status := g.end(task)
	if status.Status != contract.StatusSuccess || status.State != "Completed" || status.Attempt != 1 {
		t.Fatalf("it ended as %+v", status)
	}
	code, header, document := g.call(http.MethodGet, "/download/"+task, "")
	if code != http.StatusOK || header.Get("Content-Type") != "application/xml" ||
		!strings.Contains(header.Get("Content-Disposition"), collection.SampleRoot+"-collection.xml") {
		t.Fatalf("GET /download: %d %v", code, header)
	}
	if n := records(t, document); n != 72 || int64(len(document)) != *status.OutputFileSize {
		t.Errorf("%d records in %d of %d bytes", n, len(document), *status.OutputFileSize)
	}
	code, _, part := g.call(http.MethodGet, "/download/"+task, "", "Range", "bytes=5-14")
	if code != http.StatusPartialContent || !bytes.Equal(part, document[5:15]) {
		t.Errorf("a range: %d %q", code, part)
	}
	types := ""
	for _, e := range g.events(task) {
		types += strings.TrimPrefix(e.Type, "run.") + " "
	}
	if !strings.HasPrefix(types, "accepted admitted ") || !strings.Contains(types, "started ") || !strings.Contains(types, " attempt_ended completed") {
		t.Errorf("its events are %s", types)
	}
	code, _, _ = g.call(http.MethodDelete, "/download/"+task, "")
	if code != http.StatusNoContent {
		t.Errorf("DELETE /download: %d", code)
	}
	if code, _, _ = g.call(http.MethodGet, "/download/"+task, ""); code != http.StatusGone {
		t.Errorf("GET after DELETE: %d", code)
	}
}

func TestAMissingRootIsTheContractsError(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	const nobody = "01K9XVBAQZF9EHDRXGBEADTZZZ"
	status := g.end(g.postPI(nobody, `{"recursive":true}`))
	if status.Status != contract.StatusError || status.Error != "Failed to fetch manifest for PI "+nobody+": 404 Not Found" ||
		status.ErrorCode != "WORKER_ERROR" || status.Attempt != 1 {
		t.Errorf("it ended as %+v", status)
	}
	if code, _, text := g.call(http.MethodGet, "/download/"+status.TaskID, ""); code != http.StatusBadRequest || !bytes.Contains(text, []byte("Export not ready or failed")) {
		t.Errorf("GET /download: %d %s", code, text)
	}
}

func TestAWorkerThatOnlyCallsBackIsAWorker(t *testing.T) {
	t.Parallel()
	g := start(t, served{Play: "success"})
	if status := g.end(g.post(`{}`)); status.Status != contract.StatusSuccess {
		t.Errorf("it ended as %+v", status)
	}
}

func TestALostWorkerIsTriedAgainThreeTimes(t *testing.T) {
	t.Parallel()
	g := start(t, served{Play: "exit:3", Settings: map[string]string{"SORTIE_RETRY_DELAY": "1s"}})
	task := g.post(`{}`)
	status := g.end(task)
	if status.Status != contract.StatusError || status.ErrorCode != "WORKER_LOST" || status.Attempt != 3 ||
		!strings.Contains(status.Error, "code 3") {
		t.Errorf("it ended as %+v", status)
	}
	g.events(task)
}

func TestASecondAttemptCanSucceed(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	g := start(t, served{Play: "once:" + mark + " exit:1 success"})
	if status := g.end(g.post(`{}`)); status.Status != contract.StatusSuccess || status.Attempt != 2 {
		t.Errorf("it ended as %+v", status)
	}
}

func TestAnAttemptHasItsTimeLimit(t *testing.T) {
	t.Parallel()
	g := start(t, served{
		Play:     "deaf wait:" + pipe(t),
		Settings: map[string]string{"SORTIE_TIME_LIMIT": "3s", "SORTIE_MAX_ATTEMPTS": "1"},
	})
	task := g.post(`{}`)
	status := g.end(task)
	if status.ErrorCode != "RUN_TIMEOUT" || status.ErrorCategory != "TIMEOUT" {
		t.Errorf("it ended as %+v", status)
	}
}

// pipe makes a named pipe that nobody writes to.
func pipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// release lets everybody go on who waits for the pipe, now and later.
func release(t *testing.T, name string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if _, err := file.Write(bytes.Repeat([]byte("x"), 4096)); err != nil {
		t.Fatal(err)
	}
}

func TestManyRequestsAreManyRunsAndFewMachines(t *testing.T) {
	t.Parallel()
	const requests, limit = 60, 3
	machines, hold := t.TempDir(), pipe(t)
	g := start(t, served{
		Play: "count:" + machines + " wait:" + hold + " success", Settings: map[string]string{"SORTIE_MAX_MACHINES": fmt.Sprint(limit)},
	})
	tasks := make([]string, requests)
	var clients sync.WaitGroup
	for i := range tasks {
		clients.Go(func() { tasks[i] = g.post(`{}`) })
	}
	clients.Wait()
	last := g.await(tasks[requests-1], func(s contract.Status) bool { return s.QueuePosition != nil || s.State == "Running" })
	if last.Status != contract.StatusProcessing {
		t.Errorf("the last one is %+v", last)
	}
	release(t, hold)
	for _, task := range tasks {
		running, err := os.ReadDir(machines)
		if err != nil || len(running) > limit {
			t.Errorf("%d machines at once (%v)", len(running), err)
		}
		if status := g.end(task); status.Status != contract.StatusSuccess {
			t.Errorf("it ended as %+v", status)
		}
	}
}

func TestAnIdempotencyKeyStandsForOneRun(t *testing.T) {
	t.Parallel()
	g := start(t, served{Play: "success"})
	body := fmt.Sprintf(`{"pi":%q}`, collection.SampleRoot)
	code, _, first := g.call(http.MethodPost, "/export/mods", body, "Idempotency-Key", "k1")
	if code != http.StatusAccepted {
		t.Fatalf("%d %s", code, first)
	}
	code, _, second := g.call(http.MethodPost, "/export/mods", body, "Idempotency-Key", "k1")
	if code != http.StatusOK || !bytes.Equal(first, second) {
		t.Errorf("again: %d %s", code, second)
	}
	other := fmt.Sprintf(`{"pi":%q,"options":{"recursive":true}}`, collection.SampleRoot)
	if code, _, text := g.call(http.MethodPost, "/export/mods", other, "Idempotency-Key", "k1"); code != http.StatusUnprocessableEntity {
		t.Errorf("another request: %d %s", code, text)
	}
}

func TestEveryFormatOfAnIllCollection(t *testing.T) {
	t.Parallel()
	ill, err := collection.Generate(7, collection.Shape{Entities: 200, Rate: allIlls()})
	if err != nil {
		t.Fatal(err)
	}
	expected := ill.Expect(ill.Roots()[0].PI, collection.ExportOptions{Recursive: true, MaxDepth: 5})
	source := httptest.NewServer(ill.Handler(clock.System{}))
	t.Cleanup(source.Close)
	g := start(t, served{Source: source.URL})
	for _, format := range []string{"mods", "dc", "marcxml"} {
		code, _, text := g.call(http.MethodPost, "/export/"+format, fmt.Sprintf(`{"pi":%q,"options":{"recursive":true}}`, ill.Roots()[0].PI))
		if code != http.StatusAccepted {
			t.Fatalf("%d %s", code, text)
		}
		status := g.end(decode[contract.ExportAccepted](t, text).TaskID)
		if status.Status != contract.StatusSuccess {
			t.Fatalf("%s ended as %+v", format, status)
		}
		var counted struct {
			Exported   int `json:"entities_exported"`
			Failed     int `json:"entities_failed"`
			Incomplete int `json:"entities_incomplete"`
		}
		if err := json.Unmarshal(status.Metrics, &counted); err != nil {
			t.Fatal(err)
		}
		if counted.Exported != expected.Exported || counted.Failed != expected.Failed || counted.Incomplete != expected.Incomplete {
			t.Errorf("%s counted %+v, expected %+v", format, counted, expected)
		}
	}
}

func TestAStoppedStackTriesAgainUncounted(t *testing.T) {
	t.Parallel()
	hold, data := pipe(t), t.TempDir()
	given := served{Data: data, Play: "wait:" + hold + " success", Settings: map[string]string{"SORTIE_MAX_ATTEMPTS": "1"}}
	g := spawn(t, given)
	task := g.post(`{}`)
	g.await(task, func(s contract.Status) bool { return s.State == "Running" })
	g.kill(syscall.SIGTERM)
	release(t, hold)
	again := spawn(t, given)
	status := again.end(task)
	if status.Status != contract.StatusSuccess || status.Attempt != 2 {
		t.Errorf("it ended as %+v", status)
	}
	again.events(task)
}

func TestAKilledStackGoesOn(t *testing.T) {
	t.Parallel()
	hold, data := pipe(t), t.TempDir()
	given := served{Data: data, Play: "wait:" + hold + " success"}
	g := spawn(t, given)
	task := g.post(`{}`)
	g.await(task, func(s contract.Status) bool { return s.State == "Running" })
	queued := g.post(`{}`)
	g.kill(syscall.SIGKILL)
	again := spawn(t, given)
	if again.URL != g.URL {
		t.Fatalf("it was at %s and is at %s; no worker finds it", g.URL, again.URL)
	}
	release(t, hold)
	for _, each := range []string{task, queued} {
		if status := again.end(each); status.Status != contract.StatusSuccess || status.Attempt != 1 {
			t.Errorf("it ended as %+v", status)
		}
		again.events(each)
	}
}

func TestASecondStackOnTheSameFolderIsRefused(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	start(t, served{Data: data})
	config, err := configure(served{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stack.Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "another sortie") {
		t.Errorf("it says: %v", err)
	}
}

// allIlls makes a few entities ill in each way but the ones that take a worker
// minutes to believe; its own tests have those, with a clock to move.
func allIlls() map[collection.Ill]float64 {
	rates := map[collection.Ill]float64{}
	for _, ill := range collection.Ills() {
		if ill != collection.Down && ill != collection.Slow {
			rates[ill] = 0.02
		}
	}
	return rates
}
