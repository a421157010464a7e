package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/command"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const (
	taskID  = "export_mods_1704857234567_a3f8c2d1"
	pi      = "01K9XVBAQZF9EHDRXGBEADTZYY"
	served  = pi + "-collection.xml"
	content = "<modsCollection/>"
)

var begin = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// result is the result of a command.
type result struct {
	code           int
	stdout, stderr string
}

// sortie runs a command in this process.
func sortie(t *testing.T, env map[string]string, stdin string, args ...string) result {
	t.Helper()
	return sortieUntil(t.Context(), env, stdin, args...)
}

func sortieUntil(ctx context.Context, env map[string]string, stdin string, args ...string) result {
	return sortieOn(ctx, nil, env, stdin, args...)
}

// sortieOn is like sortieUntil, but with an AWS configuration.
func sortieOn(ctx context.Context, reach func(context.Context) (aws.Config, error), env map[string]string, stdin string, args ...string) result {
	var stdout, stderr bytes.Buffer
	p := program(env, args...)
	p.Stdin, p.Stdout, p.Stderr, p.AWS = strings.NewReader(stdin), &stdout, &stderr, reach
	code := command.Main(ctx, p)
	return result{code, stdout.String(), stderr.String()}
}

// sortieTo runs a command whose output the test reads while it runs.
func sortieTo(ctx context.Context, stdout io.Writer, env map[string]string, args ...string) (code int) {
	p := program(env, args...)
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(""), stdout, io.Discard
	return command.Main(ctx, p)
}

func program(env map[string]string, args ...string) cli.Program {
	return cli.Program{
		Args: args, Env: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		Clock: clock.System{}, Random: func() uint64 { return 4 }, Executable: []string{os.Args[0]},
	}
}

// api is a fake server with one task.
type api struct {
	status contract.Status
	events []contract.TaskEvent
	// refuse is the response to every call if it has a status.
	refuse contract.Problem
	// stays keeps the task in its status. Otherwise the task has ended at the second request
	// for the status.
	stays bool

	mu       sync.Mutex
	requests []string
	body     string
	key      string
	asked    int
	// shorten is the expiry of the output from the third status request on.
	shorten time.Time
	// task is the response to GET /v1/runs/ID if it has an id.
	task contract.Task
}

// start serves the API and returns the environment of a command that calls it.
func (a *api) start(t *testing.T) map[string]string {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return map[string]string{"SORTIE_URL": server.URL, "SORTIE_TOKEN": "s3cret"}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Method != http.MethodHead { // a probe
		a.requests = append(a.requests, r.Method+" "+r.URL.RequestURI())
	}
	if r.Header.Get("Authorization") != "Bearer s3cret" {
		a.answer(w, 401, contract.Problem{Status: 401, Code: "UNAUTHENTICATED", Detail: "no token"})
		return
	}
	switch {
	case r.URL.Path == "/healthz": // a probe
	case a.refuse.Status != 0:
		a.answer(w, a.refuse.Status, a.refuse)
	case r.Method == http.MethodPost:
		var body json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			panic(err)
		}
		a.body, a.key = string(body), r.Header.Get("Idempotency-Key")
		a.answer(w, 202, contract.ExportAccepted{TaskID: taskID, Status: "processing", Message: "Export job started."})
	case strings.HasSuffix(r.URL.Path, "/events"):
		page := contract.TaskEvents{Events: a.events}
		if r.URL.Query().Has("after") {
			page.Events = nil
		}
		a.answer(w, 200, page)
	case r.URL.Path == "/v1/tasks":
		a.tasks(w, r)
	case a.task.TaskID != "" && strings.HasPrefix(r.URL.Path, "/v1/runs/"):
		a.answer(w, 200, a.task)
	case strings.HasPrefix(r.URL.Path, "/download/"):
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", served))
		_, _ = w.Write([]byte(content))
	default:
		status := a.status
		if a.asked++; a.asked == 1 && !a.stays {
			status.Status, status.State = "processing", "Running"
		}
		if a.asked > 2 && !a.shorten.IsZero() {
			status.OutputExpiresAt = a.shorten
		}
		a.answer(w, 200, status)
	}
}

func (a *api) tasks(w http.ResponseWriter, r *http.Request) {
	list := contract.TaskList{Tasks: []contract.Task{{
		TaskID: taskID, State: "Failed", Attempt: 3, PI: pi, Format: "mods", BatchID: "nightly", CreatedAt: begin, EndedAt: begin.Add(90 * time.Second),
		Fault: &contract.Fault{Code: "WORKER_LOST"},
	}}}
	if after := r.URL.Query().Get("createdAfter"); after > begin.Format(time.RFC3339) {
		list.Tasks = nil
	} else if !r.URL.Query().Has("cursor") {
		list.NextCursor = "next"
	}
	a.answer(w, 200, list)
}

func (a *api) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

// done returns the status of a successful run.
func done() contract.Status {
	size := int64(len(content))
	return contract.Status{
		TaskID: taskID, Status: "success", State: "Completed", PI: pi, Format: "mods", Attempt: 1,
		OutputKey: "exports/" + taskID + "/" + served, OutputFileName: served, OutputFileSize: &size,
		Metrics:   json.RawMessage(`{"total_time_ms":2934,"entities_exported":72,"entities_failed":1,"peak_memory_mb":30}`),
		CreatedAt: begin, CompletedAt: begin.Add(3 * time.Second),
	}
}

// failed returns the status of a failed run.
func failed() contract.Status {
	return contract.Status{
		TaskID: taskID, Status: "error", State: "Failed", PI: pi, Format: "mods", Attempt: 1,
		Error: "404 Not Found", ErrorCode: "WORKER_ERROR", ErrorCategory: "USER_CODE", CreatedAt: begin,
	}
}

// cancelled returns the status of a cancelled run.
func cancelled() contract.Status {
	status := failed()
	status.State, status.Error, status.ErrorCode, status.ErrorCategory = "Cancelled", "the run was cancelled", "CANCELLED", "CANCELLED"
	return status
}

func skipped() contract.Status {
	status := failed()
	status.State, status.Skipped, status.ErrorCategory = "Completed", true, ""
	status.Error, status.ErrorCode = "skipped: maxConcurrentRuns: 1 of 1 slots are held", "SKIPPED"
	return status
}

func life() []contract.TaskEvent {
	return []contract.TaskEvent{
		{Seq: 1, Type: "job.accepted", OccurredAt: begin, State: "Pending"},
		{Seq: 2, Type: "job.started", OccurredAt: begin.Add(time.Second), From: "ContainerCreating", State: "Running", Attempt: 1},
		{Seq: 3, Type: "job.completed", OccurredAt: begin.Add(3 * time.Second), From: "Terminating", State: "Completed", Attempt: 1},
	}
}
