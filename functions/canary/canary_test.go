package canary_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/canary"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

var begin = time.Date(2026, 11, 22, 9, 7, 0, 0, time.UTC)

// api is a fake of Sortie's API whose exports have one state.
type api struct {
	t        *testing.T
	now      time.Time
	token    string
	state    string
	download int
	output   string
	// tasks has the task of each idempotency key.
	tasks      map[string]string
	downloaded []string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+a.token {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "{}")
		return
	}
	_, task, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/export/mods":
		var body contract.ExportRequest
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.PI != "01K9XVBAQZF9EHDRXGBEADTZYY" {
			a.t.Errorf("got export %+v, %v", body, err)
		}
		key, status := r.Header.Get("Idempotency-Key"), http.StatusOK
		if a.tasks[key] == "" {
			a.tasks[key], status = "task-of-"+key, http.StatusAccepted
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(contract.ExportAccepted{TaskID: a.tasks[key]})
	case strings.HasPrefix(r.URL.Path, "/status/"):
		status := contract.StatusProcessing
		if a.state == "Completed" {
			status = contract.StatusSuccess
		}
		_ = json.NewEncoder(w).Encode(contract.Status{TaskID: task, Status: status, State: a.state})
	case strings.HasPrefix(r.URL.Path, "/download/"):
		a.downloaded = append(a.downloaded, task)
		w.WriteHeader(a.download)
		_, _ = io.WriteString(w, a.output)
	default:
		a.t.Errorf("got %s %s", r.Method, r.URL)
	}
}

// setup returns an API and a function that invokes the canary.
func setup(t *testing.T) (*api, func() error) {
	t.Helper()
	a := &api{t: t, now: begin, token: "canary-token", state: "Completed", download: http.StatusOK, output: "<mods/>", tasks: map[string]string{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	handler := canary.Handler(canary.Canary{
		URL: server.URL, PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Client: server.Client(), Now: func() time.Time { return a.now },
		Token: func(context.Context) (string, error) { return "canary-token", nil },
	})
	return a, func() error {
		_, err := handler(t.Context(), json.RawMessage(`{"version":"0","detail-type":"Scheduled Event","source":"aws.events","detail":{}}`))
		a.now = a.now.Add(canary.Interval)
		return err
	}
}

func TestCanaryExportsAndDownloads(t *testing.T) {
	t.Parallel()
	a, invoke := setup(t)
	for range 3 {
		if err := invoke(); err != nil {
			t.Fatal(err)
		}
	}
	// The first invocation also starts the export of the invocation that would have preceded
	// it.
	if len(a.tasks) != 4 || len(a.downloaded) != 2 {
		t.Errorf("got exports %v and downloads %v, want 4 and 2", a.tasks, a.downloaded)
	}
	a.now = a.now.Add(-canary.Interval)
	if err := invoke(); err != nil || len(a.tasks) != 4 {
		t.Errorf("repeated invocation: got %v and %d exports, want 4", err, len(a.tasks))
	}
}

func TestCanaryReportsWhatFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		breaks func(*api)
		says   string
	}{
		"an export that does not end":  {func(a *api) { a.state = "Running" }, "got state Running after 15m"},
		"an export that fails":         {func(a *api) { a.state = "Failed" }, "got state Failed"},
		"a download that is refused":   {func(a *api) { a.download = http.StatusBadGateway }, "got status 502"},
		"a download that is empty":     {func(a *api) { a.output = "" }, "empty"},
		"a task that the API has lost": {func(a *api) { a.state = "" }, "got state"},
		"a token that is refused":      {func(a *api) { a.token = "other" }, "cannot begin an export: got status 401"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, invoke := setup(t)
			if err := invoke(); err != nil {
				t.Fatal(err)
			}
			row.breaks(a)
			if err := invoke(); err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want %q", err, row.says)
			}
		})
	}
}
