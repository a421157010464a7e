package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const taskID = "export_mods_1704857234567_a3f8c2d1"

func TestNewRefusesMalformedURLsAndTokens(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]client.Config{
		"other scheme":    {URL: "ftp://host"},
		"no host":         {URL: "http://"},
		"password in it":  {URL: "http://user:pw@host"},
		"query in it":     {URL: "http://host/?a=b"},
		"control in it":   {URL: "http://host/\x01"},
		"token with line": {URL: "http://host", Token: "a\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := client.New(config); err == nil {
				t.Errorf("New(%q) got no error", config.URL)
			}
		})
	}
}

func TestExportSendsTheRequest(t *testing.T) {
	t.Parallel()
	var got struct {
		path, key, token, body string
	}
	c := setup(t, inMemory{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		got.path, got.key, got.token = r.Method+" "+r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization")
		got.body = string(body)
		answer(w, http.StatusAccepted, contract.ExportAccepted{TaskID: taskID, Status: "processing"})
	})})
	depth := 3
	accepted, err := c.Export(t.Context(), "mods", contract.ExportRequest{
		PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Options: &contract.ExportOptions{MaxDepth: &depth},
	}, "key-1")
	if err != nil {
		t.Fatal(err)
	}
	if accepted.TaskID != taskID {
		t.Errorf("got task %q", accepted.TaskID)
	}
	if got.path != "POST /export/mods" || got.key != "key-1" || got.token != "Bearer s3cret" {
		t.Errorf("got the request %+v", got)
	}
	if want := `{"pi":"01K9XVBAQZF9EHDRXGBEADTZYY","options":{"maxDepth":3}}`; got.body != want {
		t.Errorf("got the body %s, want %s", got.body, want)
	}
}

func TestExportIsRepeatedIfItsResponseWasLost(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		failure error
		calls   int
		refused bool
	}{
		"answer lost":   {errReset, 3, false},
		"no connection": {errRefused, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				network := &broken{failures: 2, err: row.failure, then: inMemory{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					answer(w, http.StatusAccepted, contract.ExportAccepted{TaskID: taskID})
				})}}
				_, err := setup(t, network).Export(t.Context(), "mods", contract.ExportRequest{}, "key")
				u, unreachable := errors.AsType[*client.Unreachable](err)
				if unreachable != row.refused || unreachable && !u.Refused {
					t.Errorf("got error %v", err)
				}
				if network.calls != row.calls {
					t.Errorf("got %d calls, want %d", network.calls, row.calls)
				}
			})
		})
	}
}

func TestProblemHasTheServersText(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status int
		body   any
		want   client.Problem
	}{
		"a field": {
			400,
			map[string]any{"title": "Bad Request", "detail": "the depth is 0 to 100", "code": "INVALID_REQUEST", "field": "options.maxDepth", "status": 400},
			client.Problem{Status: 400, Code: fault.InvalidRequest, Message: "the depth is 0 to 100", Field: "options.maxDepth"},
		},
		"only a title": {404, map[string]any{"title": "Not Found"}, client.Problem{
			Status: 404, Message: "http://sortie.test is not a Sortie server: it responds with 404 Not Found and no document of Sortie", Foreign: true,
		}},
		"a task that is gone": {
			404,
			map[string]any{"detail": "Task not found", "code": "NOT_FOUND"},
			client.Problem{Status: 404, Code: fault.NotFound, Message: "Task not found"},
		},
		"not an object": {
			502, []string{"<html>"}, client.Problem{Status: 502, Message: "the server responds with 502 Bad Gateway"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := setup(t, inMemory{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				answer(w, row.status, row.body)
			})})
			_, err := c.Status(t.Context(), taskID, 0)
			p, ok := errors.AsType[*client.Problem](err)
			if !ok {
				t.Fatalf("got error %v, want a Problem", err)
			}
			if diff := cmp.Diff(row.want, *p); diff != "" {
				t.Error(diff)
			}
			if client.Gone(err) != (row.want.Code == fault.NotFound) {
				t.Errorf("Gone: got %v", client.Gone(err))
			}
		})
	}
}

func TestResponsesThatAreNotSorties(t *testing.T) {
	t.Parallel()
	c := setup(t, inMemory{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<!doctype html>hello"))
	})})
	if _, err := c.Status(t.Context(), taskID, 0); err == nil {
		t.Error("page of HTML: got no error")
	}
}

func TestWithRetrySurvivesAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := setup(t, inMemory{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if at(start) < 40*time.Second {
				w.Header().Set("Retry-After", "7")
				answer(w, http.StatusServiceUnavailable, map[string]string{"detail": "busy"})
				return
			}
			answer(w, http.StatusOK, contract.Status{TaskID: taskID, Status: "success"})
		})})
		var retries int
		if _, err := c.Status(t.Context(), taskID, 0); err == nil {
			t.Error("without WithRetry: got no error")
		}
		status, err := c.WithRetry(time.Minute, func(error) { retries++ }).Status(t.Context(), taskID, 0)
		if err != nil || status.Status != "success" {
			t.Errorf("got status %q, error %v, want success", status.Status, err)
		}
		if retries == 0 || retries > 6 {
			t.Errorf("got %d retries in 40 s with Retry-After: 7, want 1 to 6", retries)
		}
		if _, err := c.WithRetry(time.Minute, nil).Status(t.Context(), taskID, 0); err != nil {
			t.Error(err)
		}
	})
}

func TestWithRetryEndsAfterTheOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		network := &broken{failures: 1 << 30, err: errRefused}
		_, err := setup(t, network).WithRetry(time.Minute, nil).Status(t.Context(), taskID, 0)
		if _, ok := errors.AsType[*client.Unreachable](err); !ok {
			t.Errorf("got error %v", err)
		}
		if waited := at(start); waited < 50*time.Second || waited > time.Minute {
			t.Errorf("got an error after %v, want 50 s to a minute", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = setup(t, network).WithRetry(time.Minute, nil).Status(ctx, taskID, 0)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want the end of the context", err)
		}
	})
}

func TestEventsReadsAllPages(t *testing.T) {
	t.Parallel()
	c := setup(t, inMemory{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch after := r.URL.Query().Get("after"); after {
		case "":
			answer(w, 200, contract.TaskEvents{Events: []contract.TaskEvent{{Seq: 1}, {Seq: 2}}, NextAfter: 2})
		case "2":
			answer(w, 200, contract.TaskEvents{Events: []contract.TaskEvent{{Seq: 3}}})
		default:
			t.Errorf("got a request after %q", after)
		}
	})})
	events, err := c.Events(t.Context(), taskID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 3 || events[2].Seq != 3 {
		t.Errorf("got events %+v, want 3", events)
	}
}

func TestTasksRequestsThePage(t *testing.T) {
	t.Parallel()
	c := setup(t, inMemory{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got, want := r.URL.RequestURI(), "/v1/tasks?cursor=abc&limit=5&state=Running"; got != want {
			t.Errorf("got the request %s, want %s", got, want)
		}
		answer(w, 200, contract.TaskList{NextCursor: "next"})
	})})
	list, err := c.Tasks(t.Context(), client.Page{Filter: contract.RunFilter{States: []string{"Running"}}, Limit: 5, Cursor: "abc"})
	if err != nil || list.NextCursor != "next" {
		t.Errorf("got %+v, error %v", list, err)
	}
}
