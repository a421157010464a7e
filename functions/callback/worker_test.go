package callback_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// caller sends the calls of a worker.
type caller struct {
	stage *apitest.Stage
	task  string
	id    string
	token string
}

// startTask starts a run's machine and returns its worker.
func startTask(t *testing.T) caller {
	t.Helper()
	stage := setup(t)
	task := stage.Accept(t)
	stage.Start(t, task)
	stage.Supervise(t, task)
	return caller{stage, task, "w1", stage.Envelope(t, task).TaskToken}
}

// again returns the worker of the next attempt after the machine of the first
// one was lost.
func (h caller) again(t *testing.T) caller {
	t.Helper()
	h.stage.LoseMachine(t, h.task)
	h.stage.Clock.Advance(time.Minute)
	h.stage.Start(t, h.task)
	return caller{h.stage, h.task, "w2", h.stage.Envelope(t, h.task).TaskToken}
}

func (h caller) call(t *testing.T, name, body string) apitest.Answer {
	t.Helper()
	return h.stage.Call(t, http.MethodPost, "/v1/tasks/"+h.task+"/"+name, body, "Authorization", "Bearer "+h.token)
}

func (h caller) body(attempt int, more string) string {
	return fmt.Sprintf(`{"attempt":%d,"workerId":%q%s}`, attempt, h.id, more)
}

func (h caller) cancel(t *testing.T, reason ...string) {
	t.Helper()
	who := port.Identity{Tenant: apitest.Tenant, Subject: "localhost"}
	if _, err := h.stage.System.Cancel(t.Context(), who, h.task, strings.Join(reason, "")); err != nil {
		t.Fatal(err)
	}
}

// wantOK requires a 200 with the body, except for the server's time, which must
// be present.
func wantOK(t *testing.T, answer apitest.Answer, want string) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(answer.Body), &got); err != nil || answer.Status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", answer.Status, answer.Body)
	}
	if got["serverTime"] == nil {
		t.Errorf("got %s, want a server time", answer.Body)
	}
	delete(got, "serverTime")
	text, err := json.Marshal(got)
	if err != nil || string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// wantProblem requires a status and an error code of the contract.
func wantProblem(t *testing.T, answer apitest.Answer, status int, word string) contract.Problem {
	t.Helper()
	p := problem(t, answer)
	if answer.Status != status || p.Error != word || (word != "" && p.Message == "") {
		t.Errorf("got %d %s, want %d %q", answer.Status, answer.Body, status, word)
	}
	return p
}

const (
	succeeds     = `,"outcome":"SUCCEEDED"`
	fails        = `,"outcome":"FAILED","error":{"category":"USER_CODE","message":"KeyError"}`
	acked        = `{"acknowledged":true}`
	heartbeatAck = `{"acknowledged":true,"shouldCancel":false}`
)

// TestResponsesToWorkers covers the responses of the worker contract.
func TestResponsesToWorkers(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(t *testing.T, h caller){
		"started, heartbeat, completed": func(t *testing.T, h caller) {
			wantOK(t, h.call(t, "started", h.body(1, `,"startedAt":"2026-01-02T03:04:05Z"`)), acked)
			wantOK(t, h.call(t, "heartbeat", h.body(1, `,"progressPct":45,"message":"half"`)), heartbeatAck)
			wantOK(t, h.call(t, "completed", h.body(1, succeeds)), `{"acknowledged":true,"finalState":"SUCCEEDED"}`)
		},
		"completed with an error": func(t *testing.T, h caller) {
			wantOK(t, h.call(t, "completed", h.body(1, fails)), `{"acknowledged":true,"finalState":"FAILED"}`)
		},
		"another attempt than the stored one: 409 attempt_mismatch": func(t *testing.T, h caller) {
			second := h.again(t)
			for _, name := range []string{"started", "heartbeat", "completed"} {
				p := wantProblem(t, h.call(t, name, h.body(1, succeeds)), http.StatusConflict, "attempt_mismatch")
				if p.ExpectedAttempt != 2 || p.ReceivedAttempt != 1 {
					t.Errorf("%s: got expected attempt %d, received attempt %d, want 2 and 1", name, p.ExpectedAttempt, p.ReceivedAttempt)
				}
			}
			wantOK(t, second.call(t, "started", second.body(2, "")), acked)
		},
		"the stored attempt with the token of another one: 403": func(t *testing.T, h caller) {
			h.again(t)
			for _, name := range []string{"started", "heartbeat", "completed"} {
				wantProblem(t, h.call(t, name, h.body(2, succeeds)), http.StatusForbidden, "")
			}
		},
		"repeated completed: the same response": func(t *testing.T, h caller) {
			for range 3 {
				wantOK(t, h.call(t, "completed", h.body(1, fails+`,"metrics":{"cpuTimeMs":1}`)), `{"acknowledged":true,"finalState":"FAILED"}`)
			}
		},
		"another worker: 409 worker_mismatch, heartbeat 410": func(t *testing.T, h caller) {
			wantOK(t, h.call(t, "started", h.body(1, "")), acked)
			clone := h
			clone.id = "w1-clone"
			wantProblem(t, clone.call(t, "started", clone.body(1, "")), http.StatusConflict, "worker_mismatch")
			wantProblem(t, clone.call(t, "completed", clone.body(1, succeeds)), http.StatusConflict, "worker_mismatch")
			wantProblem(t, clone.call(t, "heartbeat", clone.body(1, "")), http.StatusGone, "task_expired")
			wantOK(t, h.call(t, "heartbeat", h.body(1, "")), heartbeatAck)
		},
		"timed out: 410 task_expired": func(t *testing.T, h caller) {
			wantOK(t, h.call(t, "started", h.body(1, "")), acked)
			h.stage.Reconcile(t, h.task) // no heartbeat is overdue, and the reception is recorded
			for range 4 {
				h.stage.Clock.Advance(30 * time.Second)
				h.stage.Reconcile(t, h.task)
			}
			if r := h.stage.Run(t, h.task); r.Fault == nil || r.Fault.Code != "HEARTBEAT_TIMEOUT" {
				t.Fatalf("got state %s: %v, want HEARTBEAT_TIMEOUT", r.State, r.Fault)
			}
			for _, name := range []string{"started", "heartbeat", "completed"} {
				wantProblem(t, h.call(t, name, h.body(1, succeeds)), http.StatusGone, "task_expired")
			}
		},
		"started after the end of the attempt: 409 task_already_terminal": func(t *testing.T, h caller) {
			wantOK(t, h.call(t, "completed", h.body(1, fails)), `{"acknowledged":true,"finalState":"FAILED"}`)
			p := wantProblem(t, h.call(t, "started", h.body(1, "")), http.StatusConflict, "task_already_terminal")
			if p.State != "FAILED" {
				t.Errorf("got state %s, want FAILED", p.State)
			}
		},
		"started after a cancel request: 409 task_already_terminal": func(t *testing.T, h caller) {
			h.cancel(t)
			p := wantProblem(t, h.call(t, "started", h.body(1, "")), http.StatusConflict, "task_already_terminal")
			if p.State != "CANCELLED" {
				t.Errorf("got state %s, want CANCELLED", p.State)
			}
		},
		"heartbeat after the end of the attempt: 410 task_expired": func(t *testing.T, h caller) {
			wantOK(t, h.call(t, "started", h.body(1, "")), acked)
			wantOK(t, h.call(t, "completed", h.body(1, succeeds)), `{"acknowledged":true,"finalState":"SUCCEEDED"}`)
			wantProblem(t, h.call(t, "heartbeat", h.body(1, "")), http.StatusGone, "task_expired")
		},
		"heartbeat after a cancel request with a reason: shouldCancel": func(t *testing.T, h caller) {
			wantOK(t, h.call(t, "started", h.body(1, "")), acked)
			h.cancel(t, "budget")
			wantOK(t, h.call(t, "heartbeat", h.body(1, "")), `{"acknowledged":true,"cancelReason":"budget","shouldCancel":true}`)
		},
		"heartbeat after a cancel request: shouldCancel": func(t *testing.T, h caller) {
			wantOK(t, h.call(t, "started", h.body(1, "")), acked)
			h.cancel(t)
			for range 2 {
				wantOK(t, h.call(t, "heartbeat", h.body(1, "")), `{"acknowledged":true,"cancelReason":"user_requested","shouldCancel":true}`)
			}
		},
		"first heartbeat after a cancel request: shouldCancel": func(t *testing.T, h caller) {
			h.cancel(t)
			wantOK(t, h.call(t, "heartbeat", h.body(1, "")), `{"acknowledged":true,"cancelReason":"user_requested","shouldCancel":true}`)
		},
		"first completed after a cancel request: CANCELLED": func(t *testing.T, h caller) {
			h.cancel(t)
			for range 2 {
				wantOK(t, h.call(t, "completed", h.body(1, succeeds)), `{"acknowledged":true,"finalState":"CANCELLED"}`)
			}
			wantProblem(t, h.call(t, "completed", h.body(1, fails)), http.StatusConflict, "task_already_terminal")
		},
		"contradicting completed: 409 task_already_terminal": func(t *testing.T, h caller) {
			wantOK(t, h.call(t, "completed", h.body(1, fails)), `{"acknowledged":true,"finalState":"FAILED"}`)
			p := wantProblem(t, h.call(t, "completed", h.body(1, succeeds)), http.StatusConflict, "task_already_terminal")
			if p.State != "FAILED" {
				t.Errorf("got state %s, want FAILED", p.State)
			}
		},
		"completed contradicts the callback: 409 task_already_terminal": func(t *testing.T, h caller) {
			route := workerRoutes()["callback"]
			token := newForger(t, h.stage, h.task, route.audience).signed(t, nil, nil)
			wantOK(t, h.call(t, "completed", h.body(1, fails)), `{"acknowledged":true,"finalState":"FAILED"}`)
			wantProblem(t, route.call(t, h.stage, h.task, token), http.StatusConflict, "task_already_terminal")
		},
		"heartbeat before started counts as started": func(t *testing.T, h caller) {
			wantOK(t, h.call(t, "heartbeat", h.body(1, `,"message":"here"`)), heartbeatAck)
			wantOK(t, h.call(t, "started", h.body(1, "")), acked)
			wantOK(t, h.call(t, "started", h.body(1, "")), acked)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, startTask(t))
		})
	}
}

// TestWorkerCallsBeforeItsLaunchIsCommitted has a worker call before the launch
// observed the machine or committed its id.
func TestWorkerCallsBeforeItsLaunchIsCommitted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"started", "heartbeat", "completed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage := setup(t)
			task := stage.Accept(t)
			stage.Admit(t, task)
			if state := stage.Run(t, task).State; state != run.ContainerCreating {
				t.Fatalf("got state %s, want %s", state, run.ContainerCreating)
			}
			route := workerRoutes()[name]
			h := caller{stage, task, "w", newForger(t, stage, task, route.audience).signed(t, nil, nil)}
			if answer := h.call(t, name, route.body); answer.Status != http.StatusOK {
				t.Fatalf("got %d %s, want 200", answer.Status, answer.Body)
			}
			if r := stage.Run(t, task); r.Attempt.StartedAt.IsZero() || r.Attempt.WorkerID != "w" {
				t.Errorf("got state %s, started at %s, worker %q, want a start by worker w", r.State, r.Attempt.StartedAt, r.Attempt.WorkerID)
			}
		})
	}
}

// TestHeartbeatDoesNotChangeTheRecord checks that a heartbeat is stored
// separately, with its time of receipt.
func TestHeartbeatDoesNotChangeTheRecord(t *testing.T) {
	t.Parallel()
	h := startTask(t)
	wantOK(t, h.call(t, "started", h.body(1, "")), acked)
	version := h.stage.Run(t, h.task).Version
	h.stage.Clock.Advance(10 * time.Second)
	for _, at := range []string{"2006-01-02T15:04:05Z", "2106-01-02T15:04:05+07:00"} {
		wantOK(t, h.call(t, "heartbeat", h.body(1, `,"heartbeatAt":"`+at+`","progressPct":7`)), heartbeatAck)
	}
	r := h.stage.Run(t, h.task)
	heartbeat, err := h.stage.Store.LastHeartbeat(t.Context(), r.Ref())
	if err != nil || r.Version != version {
		t.Fatalf("got version %d, want %d; %v", r.Version, version, err)
	}
	if want := apitest.Began.Add(10 * time.Second); !heartbeat.At.Equal(want) || *heartbeat.Progress != 7 || heartbeat.Token == "" {
		t.Errorf("got item %+v, received at %s", heartbeat, want)
	}
}

func TestProgressIsBoundedAndMessagesAreCut(t *testing.T) {
	t.Parallel()
	h := startTask(t)
	for given, want := range map[string]int{"-3": 0, "101": 100, "50": 50} {
		long := strings.Repeat("x", 5000)
		wantOK(t, h.call(t, "heartbeat", h.body(1, `,"progressPct":`+given+`,"message":"`+long+`"`)), heartbeatAck)
		heartbeat, err := h.stage.Store.LastHeartbeat(t.Context(), h.stage.Run(t, h.task).Ref())
		if err != nil || *heartbeat.Progress != want || len(heartbeat.Message) > 2<<10 || !strings.HasSuffix(heartbeat.Message, "(cut)") {
			t.Errorf("%s: got %d, with a message of %d bytes, %v, want %d and a message cut at 2 KiB", given, *heartbeat.Progress, len(heartbeat.Message), err, want)
		}
	}
}

// TestLongCompletionIsTruncated checks that long fields are cut and marked, not
// rejected.
func TestLongCompletionIsTruncated(t *testing.T) {
	t.Parallel()
	h := startTask(t)
	long := strings.Repeat("trace\\n", 400_000)
	body := `,"outcome":"FAILED","error":{"category":"DATA_QUALITY","message":"` + strings.Repeat("m", 9000) +
		`","stackTrace":"` + long + `"},"metrics":{"own":"` + strings.Repeat("x", 200_000) + `"}`
	wantOK(t, h.call(t, "completed", h.body(1, body)), `{"acknowledged":true,"finalState":"FAILED"}`)
	report := h.stage.Run(t, h.task).Attempt.Report
	if len(report.StackTrace) > 16<<10 || !strings.HasSuffix(report.StackTrace, "(cut)") ||
		len(report.Error) > 2<<10 || !strings.HasSuffix(report.Error, "(cut)") || !strings.Contains(string(report.Metrics), `"cut":true`) {
		t.Errorf("got %d bytes of the trace, %d of the message, metrics %s, want each cut", len(report.StackTrace), len(report.Error), report.Metrics)
	}
}

func TestInvalidCallsNameTheField(t *testing.T) {
	t.Parallel()
	h := startTask(t)
	version := h.stage.Run(t, h.task).Version
	for _, row := range []struct{ call, body, field string }{
		{"started", `{"workerId":"w"}`, "attempt"},
		{"started", `{"attempt":0,"workerId":"w"}`, "attempt"},
		{"started", `{"attempt":"1","workerId":"w"}`, "attempt"},
		{"started", `{"attempt":1}`, "workerId"},
		{"started", `{"attempt":1,"workerId":"a\nb"}`, "workerId"},
		{"started", `{"attempt":1,"workerId":"` + strings.Repeat("w", 256) + `"}`, "workerId"},
		{"completed", h.body(1, ""), "outcome"},
		{"completed", h.body(1, `,"outcome":"success"`), "outcome"},
		{"completed", h.body(1, `,"outcome":"FAILED"`), "error"},
		{"completed", h.body(1, `,"outcome":"FAILED","error":{"message":"x"}`), "error.category"},
		{"completed", h.body(1, `,"outcome":"FAILED","error":{"category":"MOOD","message":"x"}`), "error.category"},
		{"started", `{"attempt":1.5,"workerId":"w"}`, "attempt"},
		{"started", `{"attempt":1,"attempt":1,"workerId":"w"}`, "attempt"},
		{"started", `{"attempt":1,"workerId":7}`, "workerId"},
		{"completed", h.body(1, `,"outcome":1`), "outcome"},
		{"completed", h.body(1, `,"outcome":"FAILED","error":"boom"`), "error"},
		{"completed", h.body(1, `,"outcome":"FAILED","error":{"category":5,"message":"x"}`), "error.category"},
		{"completed", h.body(1, succeeds+`,"output":{"outputPath":7}`), "output.outputPath"},
		{"completed", h.body(1, succeeds+`,"output":{"outputPath":"exports/another/x.xml","byteSize":1}`), "output.outputPath"},
		{"completed", h.body(1, succeeds+`,"output":{"outputPath":"exports/`+h.task+`/../x","byteSize":1}`), "output.outputPath"},
	} {
		answer := h.call(t, row.call, row.body)
		if p := problem(t, answer); answer.Status != http.StatusBadRequest || p.Field != row.field {
			t.Errorf("%s %s: got %d for %q, want 400 for %q", row.call, row.body, answer.Status, p.Field, row.field)
		}
	}
	if now := h.stage.Run(t, h.task).Version; now != version {
		t.Errorf("got version %d, want %d", now, version)
	}
}

// TestOptionalFieldsMayBeAbsent sends nulls, unknown fields and no times.
func TestOptionalFieldsMayBeAbsent(t *testing.T) {
	t.Parallel()
	h := startTask(t)
	wantOK(t, h.call(t, "started", h.body(1, `,"startedAt":null,"host":{"name":"x"}`)), acked)
	wantOK(t, h.call(t, "heartbeat", h.body(1, `,"heartbeatAt":null,"progressPct":null,"message":null`)), heartbeatAck)
	wantOK(t, h.call(t, "completed", h.body(1, succeeds+`,"output":null,"error":null,"metrics":null,"partialProgress":null`)), `{"acknowledged":true,"finalState":"SUCCEEDED"}`)
}

// TestOutputOfCompletion checks that an output at the key of the envelope is
// accepted and any other is only recorded.
func TestOutputOfCompletion(t *testing.T) {
	t.Parallel()
	h := startTask(t)
	target := h.stage.Envelope(t, h.task).Output
	h.stage.Objects.Store(port.Uploads, target.Key, "application/xml", "<a/>")
	body := fmt.Sprintf(`,"outcome":"SUCCEEDED","output":{"outputPath":%q,"byteSize":4,"rowCount":9,"fileName":"a.xml"}`, target.Key)
	wantOK(t, h.call(t, "completed", h.body(1, body)), `{"acknowledged":true,"finalState":"SUCCEEDED"}`)
	h.stage.Settle(t, h.task)
	r := h.stage.Run(t, h.task)
	if r.State != run.Completed || r.Output == nil || r.Output.FileName != "a.xml" || !strings.Contains(string(r.Attempt.Report.Output), `"rowCount":9`) {
		t.Errorf("got state %s with %+v, report %s, want %s with a.xml and rowCount 9", r.State, r.Output, r.Attempt.Report.Output, run.Completed)
	}
	other := startTask(t)
	wantOK(t, other.call(t, "completed", other.body(1, `,"outcome":"SUCCEEDED","output":{"outputPath":"gs://theirs/x","rowCount":1}`)), `{"acknowledged":true,"finalState":"SUCCEEDED"}`)
	other.stage.Settle(t, other.task)
	if r := other.stage.Run(t, other.task); r.State != run.Completed || r.Output != nil || !strings.Contains(string(r.Attempt.Report.Output), "gs://theirs/x") {
		t.Errorf("got state %s with %+v, want %s without an output", r.State, r.Output, run.Completed)
	}
}
