package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRunSaysThatTheServerIsLost follows a run whose server breaks the stream, refuses two
// connections, and then answers again.
func TestRunSaysThatTheServerIsLost(t *testing.T) {
	t.Parallel()
	var streams atomic.Int32
	mux := http.NewServeMux()
	answer := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	mux.HandleFunc("POST /v1/runs", answer(202, `{"taskId":"job_1","runId":"job_1"}`))
	mux.HandleFunc("GET /status/job_1", answer(200, `{"task_id":"job_1","status":"success","state":"Completed"}`))
	mux.HandleFunc("GET /v1/runs/job_1", answer(200, `{"taskId":"job_1","runId":"job_1","state":"Completed"}`))
	mux.HandleFunc("GET /v1/tasks/job_1/events", answer(200, `{"events":[]}`))
	mux.HandleFunc("GET /v1/tasks/job_1/logs", func(w http.ResponseWriter, _ *http.Request) {
		switch n := streams.Add(1); n {
		case 1, 4:
			w.Header().Set("Content-Type", "application/x-ndjson")
			fmt.Fprintf(w, `{"attempt":1,"stream":"stdout","data":"bGluZQo=","next":%d,"ended":%t}`+"\n", 5*n, n == 4)
			if n == 1 {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		default:
			panic(http.ErrAbortHandler)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	got := sortie(t, map[string]string{"SORTIE_URL": server.URL}, "", "run", "exec:/bin/true")
	if got.code != 0 || got.stdout != "line\nline\n" {
		t.Errorf("got %+v, want the output before and after the outage", got)
	}
	lost, again := strings.Count(got.stderr, `the run continues. Trying again until `), strings.Count(got.stderr, "connected again\n")
	if lost != 1 || again != 1 || !strings.Contains(got.stderr, `follow it later with "sortie logs job_1 --follow"`) {
		t.Errorf("got standard error %q, want the loss and its end once", got.stderr)
	}
}
