package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/api"
)

func TestConfiguration(t *testing.T) {
	t.Parallel()
	for _, row := range []Config{{URL: "ftp://x"}, {URL: "127.0.0.1:80"}, {URL: "http://u:p@x"}, {URL: "http://x?a=b"}, {URL: "http://x", Token: "a b"}, {URL: "http://x", Token: "a\nb"}} {
		if _, err := New(row); err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%+v: got %v, want an error without the value", row, err)
		}
	}
	env := map[string]string{"SORTIE_URL": "http://x/base/", "SORTIE_TOKEN": "t"}
	c, err := New(FromEnv(func(name string) string { return env[name] }))
	if err != nil || c.transport.base != "http://x/base" || c.transport.token != "t" {
		t.Errorf("got %v, want the variables", err)
	}
}

func TestPagesAreRead(t *testing.T) {
	t.Parallel()
	var asked []string
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		switch r.URL.Query().Get("cursor") {
		case "":
			_, _ = io.WriteString(w, `{"tasks": [{"taskId": "a"}, {"taskId": "b"}], "nextCursor": "2"}`)
		case "2":
			_, _ = io.WriteString(w, `{"tasks": [], "nextCursor": "3"}`)
		default:
			_, _ = io.WriteString(w, `{"tasks": [{"taskId": "c"}]}`)
		}
	})
	list := c.Runs.List(RunsListQuery{State: api.StateFailed, Skipped: new(false)})
	for range 2 { // each iteration begins at the first page
		var got []string
		for run, err := range list.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, run.TaskID)
		}
		if fmt.Sprint(got) != "[a b c]" {
			t.Errorf("got %v, want a, b, c", got)
		}
	}
	if len(asked) != 6 || asked[0] != "skipped=false&state=Failed" || asked[3] != asked[0] {
		t.Errorf("got requests %q, want two lists of three pages", asked)
	}
	page, err := list.Page(t.Context())
	if err != nil || len(page.Tasks) != 2 {
		t.Errorf("got %v (%v), want the first page", page, err)
	}
}

func TestEventsEndWhereTheStreamEnds(t *testing.T) {
	t.Parallel()
	requests := 0
	c := testClient(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, _ = io.WriteString(w, `{"events": [], "next": "c-1"}`)
	})
	for range c.Events.List(EventsListQuery{}).All(t.Context()) {
		t.Error("got an event, want none")
	}
	if requests != 2 {
		t.Errorf("got %d requests, want 2", requests)
	}
}

func TestErrorsHaveCodeAndClass(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{400: ErrInvalid, 401: ErrUnauthenticated, 403: ErrForbidden, 404: ErrNotFound, 409: ErrConflict, 410: ErrNotFound, 412: ErrPreconditionFailed, 422: ErrInvalid, 429: ErrRateLimited, 500: ErrServer} {
		c := testClient(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Correlation-Id", "corr")
			w.Header().Set("Retry-After", "100")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"code": "SOME_CODE", "title": "t", "detail": "what is wrong", "field": "image"}`)
		})
		_, err := c.Runs.Get(t.Context(), "x")
		refused, ok := errors.AsType[*Error](err)
		if !ok || !errors.Is(err, want) || !HasCode(err, "SOME_CODE") || refused.Message != "what is wrong" || refused.CorrelationID != "corr" || refused.RetryAfter != 100*time.Second || refused.Problem.Field != "image" {
			t.Errorf("%d: got %+v, want class %v", status, err, want)
		}
	}
}

func TestRetriesHaveNoSecondEffect(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		use    func(*Client) error
		status int
		want   int
	}{
		"a read":                   {func(c *Client) error { _, err := c.Runs.Get(t.Context(), "x"); return err }, 503, 3},
		"a creation has a key":     {func(c *Client) error { _, err := c.Runs.Create(t.Context(), &api.RunDefinition{}); return err }, 503, 3},
		"a patch":                  {func(c *Client) error { _, err := c.Jobs.Patch(t.Context(), "x", map[string]any{}); return err }, 503, 1},
		"a patch that had to wait": {func(c *Client) error { _, err := c.Jobs.Patch(t.Context(), "x", map[string]any{}); return err }, 429, 3},
		"a conditional change":     {func(c *Client) error { return c.Jobs.Delete(t.Context(), "x", WithIfMatch(`"1"`)) }, 503, 1},
		"a cancel":                 {func(c *Client) error { _, err := c.Runs.Cancel(t.Context(), "x", nil); return err }, 502, 3},
		"an invalid request":       {func(c *Client) error { _, err := c.Runs.Get(t.Context(), "x"); return err }, 400, 1},
	} {
		var requests atomic.Int32
		keys := map[string]bool{}
		c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			keys[r.Header.Get("Idempotency-Key")] = true
			w.WriteHeader(row.status)
		})
		if err := row.use(c); err == nil || int(requests.Load()) != row.want || len(keys) != 1 {
			t.Errorf("%s: got %v after %d requests with keys %v, want %d with one key", name, err, requests.Load(), keys, row.want)
		}
	}
}

func TestRequestsCarryTheTokenOnlyToTheServer(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("got a token, want none")
		}
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("Range") == "" {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "01234")
			return
		}
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(w, "56789")
	}))
	t.Cleanup(other.Close)
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("got %q, want the token", r.Header.Get("Authorization"))
		}
		http.Redirect(w, r, other.URL+"/object?signature=hidden", http.StatusFound)
	})
	var b bytes.Buffer
	size, err := c.Tasks.Download(t.Context(), "job_1", &b)
	if err != nil || size != 10 || b.String() != "0123456789" {
		t.Errorf("got %d bytes %q (%v), want ten", size, b.String(), err)
	}
	other.Close()
	if _, err = c.Tasks.Output(t.Context(), "job_1"); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v, want an error without the signature", err)
	}
}

func TestOtherRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	})
	if _, err := c.Runs.Get(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestIdsAreParts(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"a/b": "/v1/runs/a%2Fb", "": "/v1/runs/~", "..": "/v1/runs/~..", "a?b": "/v1/runs/a%3Fb", "nightly:20260102T000000Z": "/v1/runs/nightly:20260102T000000Z"} {
		if got := pathOf("/v1/runs/{run_id}", id); got != want {
			t.Errorf("%q: got %s, want %s", id, got, want)
		}
	}
}

func TestSlowAnswerIsAConnectionError(t *testing.T) {
	t.Parallel()
	c := testClient(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(config *Config) { config.Retries = -1 })
	_, err := c.Runs.Get(t.Context(), "x", WithTimeout(20*time.Millisecond))
	if _, ok := errors.AsType[*ConnectionError](err); !ok {
		t.Errorf("got %v, want a connection error", err)
	}
}

func TestWaitReturnsTheEnd(t *testing.T) {
	t.Parallel()
	requests := 0
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		state := "Running"
		if requests > 2 {
			state = "Failed"
		}
		if strings.HasPrefix(r.URL.Path, "/status/") && r.URL.Query().Get("wait") != "20" {
			t.Errorf("got %s, want a wait", r.URL)
		}
		_, _ = fmt.Fprintf(w, `{"taskId": "job_1", "state": %q}`, state)
	})
	run, err := c.Runs.Wait(t.Context(), "job_1")
	if err != nil || run.State != api.StateFailed {
		t.Errorf("got %v (%v), want Failed", run, err)
	}
}

func TestHeaderOfAnAnswer(t *testing.T) {
	t.Parallel()
	c := testClient(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"7"`)
		_, _ = io.WriteString(w, "{}")
	})
	var header http.Header
	if _, err := c.Jobs.Get(t.Context(), "x", WithResponseHeader(&header)); err != nil || header.Get("ETag") != `"7"` {
		t.Errorf("got %v (%v), want the entity tag", header, err)
	}
}
