package stack_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/sortie-dev/sortie/local/proof/port/otlptest"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/trace"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const (
	otlpEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	clientTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan   = "00f067aa0ba902b7"
	traceParent  = "00-" + clientTrace + "-" + clientSpan + "-01"
)

// accept sends a request that creates a run, with the client's trace context. It returns the
// task.
func (g *target) accept(path, body string) string {
	g.T.Helper()
	answer := g.Call(http.MethodPost, path, body, "Traceparent", traceParent)
	var accepted struct {
		TaskID     string `json:"taskId"`
		ExportTask string `json:"task_id"`
	}
	if err := json.Unmarshal(answer.Body, &accepted); err != nil || answer.Status != http.StatusAccepted {
		g.T.Fatalf("%s: got %d %s, want 202", path, answer.Status, answer.Body)
	}
	return accepted.TaskID + accepted.ExportTask
}

// ended returns a condition that is true when the span of a task's run was received.
func ended(task string) func(otlptest.Spans) bool {
	return func(s otlptest.Spans) bool { return len(s.Named(trace.NameRun).Of("task_id", task)) > 0 }
}

// TestTraceOfARetriedRun runs a program that fails once. Each attempt prints its trace context.
func TestTraceOfARetriedRun(t *testing.T) {
	t.Parallel()
	receiver, folder := otlptest.New(t), t.TempDir()
	g := start(t, served{Settings: map[string]string{otlpEndpoint: receiver.URL, "OTEL_SERVICE_NAME": "sortie-test"}})
	g.Token = g.stack.Token()
	task := g.accept("/v1/runs", fmt.Sprintf(`{"image": "exec:/bin/sh", "retryConfig": {"maxRetries": 1, "initialDelay": "1s"},
		"command": ["-c", "echo $TRACEPARENT > %[1]s/$SORTIE_ATTEMPT; [ $SORTIE_ATTEMPT = 2 ]"]}`, folder))
	if status := g.End(task); status.State != string(run.Completed) || status.Attempt != 2 {
		t.Fatalf("got %+v, want Completed in attempt 2", status)
	}
	spans := receiver.Await(ended(task)).Of("task_id", task)
	whole, request := spans.Named(trace.NameRun)[0], spans.Named(trace.NameRequest)[0]
	if request.GetKind() != tracepb.Span_SPAN_KIND_SERVER || fmt.Sprintf("%x", request.GetParentSpanId()) != clientSpan || !inside(whole, request.GetSpanId()) {
		t.Errorf("got the request %v and the run %v, want them below the client's span", request, whole)
	}
	attempts := spans.Named(trace.NameAttempt)
	if len(attempts) != 2 {
		t.Fatalf("got %v, want two attempts", spans.Names())
	}
	for i, attempt := range attempts {
		seen, err := os.ReadFile(filepath.Join(folder, fmt.Sprint(i+1)))
		if got := strings.TrimSpace(string(seen)); err != nil || got != otlptest.TraceParent(attempt) || !strings.Contains(got, clientTrace) {
			t.Errorf("attempt %d: got the variable %q (%v), want %s", i+1, got, err, otlptest.TraceParent(attempt))
		}
		if !inside(attempt, whole.GetSpanId()) {
			t.Errorf("got attempt %v, want it in the run", attempt)
		}
	}
	checkTrace(t, spans, clientTrace)
	if service := receiver.Service(); service["service.name"] != "sortie-test" || service["service.version"] != "test" {
		t.Errorf("got service %v, want sortie-test in the version test", service)
	}
}

// inside reports whether the span has the parent.
func inside(s *tracepb.Span, parent []byte) bool { return bytes.Equal(s.GetParentSpanId(), parent) }

// checkTrace checks the spans of an ended run. They are in one trace and within their parents,
// no id occurs twice, and the states add up to the run.
func checkTrace(t *testing.T, spans otlptest.Spans, id string) {
	t.Helper()
	byID := map[string]*tracepb.Span{}
	for _, s := range spans {
		if byID[string(s.GetSpanId())] != nil || fmt.Sprintf("%x", s.GetTraceId()) != id {
			t.Errorf("got span %v, want a new one of trace %s", s, id)
		}
		byID[string(s.GetSpanId())] = s
	}
	whole := spans.Named(trace.NameRun)[0]
	sum := uint64(0)
	for _, s := range spans {
		if run.State(s.GetName()).Valid() {
			sum += s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano()
		}
		parent := byID[string(s.GetParentSpanId())]
		if parent == nil && s != whole && s.GetName() != trace.NameRequest {
			t.Errorf("got span %v without its parent in %v", s, spans.Names())
		}
		if parent != nil && parent.GetName() != trace.NameRequest && (s.GetStartTimeUnixNano() < parent.GetStartTimeUnixNano() || s.GetEndTimeUnixNano() > parent.GetEndTimeUnixNano()) {
			t.Errorf("got span %v, want it within %v", s, parent)
		}
	}
	if total := whole.GetEndTimeUnixNano() - whole.GetStartTimeUnixNano(); sum != total || total == 0 {
		t.Errorf("got states of %d ns, want the run's %d", sum, total)
	}
}

// TestRequestsTakeTheClientsTrace creates runs in all possible ways.
func TestRequestsTakeTheClientsTrace(t *testing.T) {
	t.Parallel()
	receiver := otlptest.New(t)
	g := start(t, served{Play: "success", Settings: map[string]string{otlpEndpoint: receiver.URL}})
	g.Token = g.stack.Token()
	if answer := g.Call(http.MethodPut, "/v1/jobs/report", `{"image": "exec:/bin/true"}`, "If-None-Match", "*"); answer.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
	}
	tasks := []string{g.accept("/export/mods", `{"pi": "01K9XVBAQZF9EHDRXGBEADTZYY"}`), g.accept("/v1/jobs/report/runs", "{}")}
	g.End(tasks[1])
	once := g.accept("/v1/runs", `{"image": "exec:/bin/true"}`)
	g.End(once)
	tasks = append(tasks, once, g.accept("/v1/tasks/"+once+"/retry", ""), g.accept("/v1/runs/"+once+"/retry", ""))
	answer := g.Call(http.MethodPost, "/v1/runs:retry", `{"filter": {"jobId": "report", "states": ["Completed"]}}`, "Traceparent", traceParent)
	var bulk contract.BulkAnswer
	if err := json.Unmarshal(answer.Body, &bulk); err != nil || len(bulk.Runs) != 1 || bulk.Runs[0].Retry == nil {
		t.Fatalf("got %d %s, want one retry", answer.Status, answer.Body)
	}
	for _, task := range append(tasks, bulk.Runs[0].Retry.TaskID) {
		spans := receiver.Await(ended(task)).Of("task_id", task)
		if request := spans.Named(trace.NameRequest); len(request) != 1 || fmt.Sprintf("%x", request[0].GetParentSpanId()) != clientSpan {
			t.Errorf("%s: got requests %v, want one below the client's span", task, request)
		}
		checkTrace(t, spans, clientTrace)
	}
}

// TestKilledStackContinuesTheTrace kills the stack while the worker runs. The worker has the
// trace context of the attempt that the next process ends.
func TestKilledStackContinuesTheTrace(t *testing.T) {
	t.Parallel()
	receiver, hold, data, envelope := otlptest.New(t), scripts.Pipe(t), t.TempDir(), filepath.Join(t.TempDir(), "envelope")
	given := served{Data: data, Play: "envelope:" + envelope + " wait:" + hold + " success", Settings: map[string]string{otlpEndpoint: receiver.URL}}
	g := spawn(t, given)
	task := g.post(contract.ExportOptions{})
	g.Running(task)
	receiver.Await(func(s otlptest.Spans) bool { return len(s.Named(string(run.ContainerCreating))) > 0 })
	g.kill(syscall.SIGKILL)
	again := spawn(t, given)
	scripts.Release(t, hold)
	if status := again.End(task); status.Status != contract.StatusSuccess || status.Attempt != 1 {
		t.Fatalf("got %+v, want a success in attempt 1", status)
	}
	spans := receiver.Await(ended(task))
	var got contract.TaskEnvelope
	text, err := os.ReadFile(envelope)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	attempts := spans.Named(trace.NameAttempt)
	if err != nil || len(attempts) != 1 || got.TraceParent != otlptest.TraceParent(attempts[0]) {
		t.Fatalf("got the context %q (%v) and the attempts %v, want one attempt with that id", got.TraceParent, err, attempts)
	}
	checkTrace(t, spans, got.TraceParent[3:35])
}

// TestTracesAreOffByDefault checks that no endpoint is configured by default. With an endpoint,
// OTEL_SDK_DISABLED turns the export off.
func TestTracesAreOffByDefault(t *testing.T) {
	t.Parallel()
	settings, err := stack.SettingsFrom(setting.Map(map[string]string{"OTEL_SERVICE_NAME": "a", "OTEL_TRACES_EXPORTER": "otlp"}), nil)
	if err != nil || settings.Traces.Endpoint != "" {
		t.Errorf("got endpoint %q (%v), want none", settings.Traces.Endpoint, err)
	}
	receiver := otlptest.New(t)
	g := start(t, served{Settings: map[string]string{otlpEndpoint: receiver.URL, "OTEL_SDK_DISABLED": "true"}})
	g.Token = g.stack.Token()
	g.End(g.accept("/v1/runs", `{"image": "exec:/bin/true"}`))
	if err := g.stack.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := receiver.Requests(); len(got) != 0 {
		t.Errorf("got %d requests, want none", len(got))
	}
}
