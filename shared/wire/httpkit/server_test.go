package httpkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

var began = time.Unix(1_000_000, 0)

const madeID = "11111111-2222-4333-8444-555555555555"

type bench struct {
	handler http.Handler
	logs    *bytes.Buffer
	// refused are the codes with which POST /thing/{id} was refused.
	refused *[]fault.Code
}

// setup serves handle at GET and POST /thing/{id} for clients. change modifies
// the configuration.
func setup(t *testing.T, handle httpkit.Handler, change ...func(*httpkit.Config)) bench {
	t.Helper()
	b := bench{logs: &bytes.Buffer{}, refused: &[]fault.Code{}}
	config := httpkit.Config{
		Loopback: true, PublicHost: "sortie.example:443", Clock: clock.NewVirtual(began),
		Local: port.Identity{Tenant: "local", Scopes: access.Scopes()},
		Log:   slog.New(slog.NewJSONHandler(b.logs, nil)), NewID: func() string { return madeID },
	}
	for _, f := range change {
		f(&config)
	}
	var err error
	b.handler, err = httpkit.New(config,
		httpkit.Route{Method: http.MethodGet, Pattern: "/thing/{id}", Access: httpkit.ForClients, Scope: access.RunsRead, Query: []string{"q"}, Handle: handle},
		httpkit.Route{
			Method: http.MethodPost, Pattern: "/thing/{id}", Access: httpkit.ForClients, Scope: access.RunsWrite, Handle: handle,
			Refused: func(_ context.Context, code fault.Code, _ error) { *b.refused = append(*b.refused, code) },
		},
		httpkit.Route{Method: http.MethodPost, Pattern: "/worker", Access: httpkit.ForWorkers, Handle: handle},
		httpkit.Route{Method: http.MethodGet, Pattern: "/readers", Access: httpkit.ForReaders, Scope: access.EventsRead, Query: []string{"q", "types", "more"}, Handle: handle},
		httpkit.Route{Method: http.MethodGet, Pattern: "/readers/{task_id}", Access: httpkit.ForReaders, Scope: access.EventsRead, Query: []string{"q"}, Handle: handle},
		httpkit.Route{Method: http.MethodGet, Pattern: "/open", Access: httpkit.ForAll, Handle: handle},
	)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b bench) call(t *testing.T, method, path string, headers ...string) (*httptest.ResponseRecorder, contract.Problem) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1:8080"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	var p contract.Problem
	if w.Header().Get("Content-Type") == "application/problem+json" && method != http.MethodHead {
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
	}
	return w, p
}

func ok(w http.ResponseWriter, r *http.Request) error {
	return httpkit.WriteJSON(w, http.StatusOK, map[string]string{"caller": httpkit.CallerOf(r.Context()).Subject})
}

func TestFailuresBecomeProblems(t *testing.T) {
	t.Parallel()
	secret := errors.New("pq: password of 10.0.0.3 is wrong")
	for _, row := range []struct {
		name    string
		err     error
		status  int
		code    string
		word    string
		headers map[string]string
	}{
		{"invalid", fault.Invalid("a.b", "no"), 400, "INVALID_REQUEST", "", nil},
		{"not ready", fault.New(fault.NotReady, "no"), 400, "NOT_READY", "", nil},
		{"forbidden", fault.New(fault.Forbidden, "no"), 403, "FORBIDDEN", "", nil},
		{"not found", fault.New(fault.NotFound, "no"), 404, "NOT_FOUND", "", nil},
		{"mismatch", fault.New(fault.AttemptMismatch, "no"), 409, "ATTEMPT_MISMATCH", "attempt_mismatch", nil},
		{"terminal", fault.New(fault.TaskAlreadyTerminal, "no"), 409, "TASK_ALREADY_TERMINAL", "task_already_terminal", nil},
		{"expired", fault.New(fault.TaskExpired, "no"), 410, "TASK_EXPIRED", "task_expired", nil},
		{"output", fault.New(fault.OutputExpired, "no"), 410, "OUTPUT_EXPIRED", "", nil},
		{"precondition", httpkit.PreconditionFailed("no"), 412, "PRECONDITION_FAILED", "", nil},
		{"large", fault.New(fault.TooLarge, "no"), 413, "TOO_LARGE", "", nil},
		{"range", httpkit.RangeNotSatisfiable(9), 416, "RANGE_NOT_SATISFIABLE", "", map[string]string{"Content-Range": "bytes */9"}},
		{"key", fault.New(fault.IdempotencyMismatch, "no"), 422, "IDEMPOTENCY_MISMATCH", "", nil},
		{"throttled", fault.New(fault.Throttled, "no"), 429, "THROTTLED", "", map[string]string{"Retry-After": "1", "X-Backoff-Ms": "1000"}},
		{"budget", noBudget("tenant", budget.Tokens), 429, "ADMISSION_REJECT", "", map[string]string{"Retry-After": "60", "X-Backoff-Ms": "60000", "X-Should-Retry": "false"}},
		{"budget that is held", (&port.NoBudget{Shortage: budget.Shortage{Scope: "tenant", Part: budget.Tokens, Held: 3}}).Fault(), 429, "ADMISSION_REJECT", "", map[string]string{"Retry-After": "1", "X-Backoff-Ms": "1000", "X-Should-Retry": ""}},
		{"ninth turn", noBudget("session:s", budget.Turns), 409, "SESSION_CLOSED", "", map[string]string{"X-Should-Retry": "false"}},
		{"expired session", noBudget("session:s", budget.Expired), 409, "SESSION_CLOSED", "", map[string]string{"X-Should-Retry": "false"}},
		{"unavailable", fault.Wrap(secret, fault.Unavailable, "no"), 503, "UNAVAILABLE", "", map[string]string{"Retry-After": "1", "X-Backoff-Ms": "1000"}},
		{"full", fault.New(fault.StoreFull, "no"), 503, "STORE_FULL", "", map[string]string{"Retry-After": "30"}},
		{"a deadline", fmt.Errorf("x: %w", context.DeadlineExceeded), 503, "UNAVAILABLE", "", map[string]string{"Retry-After": "1"}},
		{"ours", secret, 500, "INTERNAL", "", nil},
		{"wrapped", fmt.Errorf("x: %w", fault.New(fault.NotFound, "no")), 404, "NOT_FOUND", "", nil},
		{"a run's fault", fault.New(fault.WorkerLost, "secret detail"), 500, "INTERNAL", "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(http.ResponseWriter, *http.Request) error { return row.err })
			w, p := b.call(t, http.MethodGet, "/thing/1?q=hidden", "X-Correlation-Id", "mine")
			if w.Code != row.status || p.Status != row.status || p.Code != row.code || p.Error != row.word {
				t.Errorf("got %d: %s, want %d %s", w.Code, w.Body, row.status, row.code)
			}
			if p.CorrelationID != "mine" || p.Instance != "/thing/1" || p.Title == "" || p.Detail == "" || !strings.HasPrefix(p.Type, "urn:") {
				t.Errorf("got problem %s, want every member set", w.Body)
			}
			for name, want := range row.headers {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			if strings.Contains(w.Body.String(), "pq:") || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("got internal details in the problem: %s, want them only in the log", w.Body)
			}
			if row.status >= 500 && !strings.Contains(b.logs.String(), `"level":"ERROR"`) {
				t.Errorf("got no error in the log: %s, want one", b.logs)
			}
		})
	}
}

func TestPanicIsLoggedAndReturns500(t *testing.T) {
	t.Parallel()
	b := setup(t, func(http.ResponseWriter, *http.Request) error { panic("secret state") })
	w, p := b.call(t, http.MethodGet, "/thing/1")
	if w.Code != 500 || p.Code != "INTERNAL" || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("got %d %s, want 500 without details", w.Code, w.Body)
	}
	if !strings.Contains(b.logs.String(), "secret state") || !strings.Contains(b.logs.String(), "server_test.go") {
		t.Errorf("got log %s, want the panic with its stack trace", b.logs)
	}
}

func TestIncompleteResponseBreaksTheConnection(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]httpkit.Handler{
		"an error": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusOK)
			return errors.New("too late")
		},
		"a panic": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusOK)
			panic("too late")
		},
		"an abort": func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, handle)
			defer func() {
				if recover() != http.ErrAbortHandler { //nolint:errorlint // a panic's value
					t.Error("got a complete response, want a broken connection")
				}
				if !strings.Contains(b.logs.String(), `"msg":"request"`) {
					t.Errorf("got no access log line: %s, want one", b.logs)
				}
			}()
			b.call(t, http.MethodGet, "/thing/1")
		})
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	b := setup(t, ok)
	for _, row := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/nothing", 404, ""},
		{"GET", "/thing/", 404, ""},
		{"GET", "/thing/1/", 404, ""},
		{"GET", "//thing/1", 404, ""},
		{"GET", "/thing/../open", 404, ""},
		{"GET", "/", 404, ""},
		{"DELETE", "/thing/1", 405, "GET, HEAD, POST"},
		{"OPTIONS", "/open", 405, "GET, HEAD"},
		{"GET", "/worker", 405, "POST"},
		{"BREW", "/thing/1", 405, "GET, HEAD, POST"},
		{"HEAD", "/worker", 405, "POST"},
		{"HEAD", "/thing/1", 200, ""},
	} {
		w, p := b.call(t, row.method, row.path)
		if w.Code != row.status || w.Header().Get("Allow") != row.allow {
			t.Errorf("%s %s: got %d, Allow %q, want %d, %q", row.method, row.path, w.Code, w.Header().Get("Allow"), row.status, row.allow)
		}
		if row.method != "HEAD" && p.Status != row.status {
			t.Errorf("%s %s: got body %s, want a problem with status %d", row.method, row.path, w.Body, row.status)
		}
		if row.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("HEAD: got body %s, want none", w.Body)
		}
	}
}

func TestCorrelationID(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, sent, want string }{
		{"own", "abc 1/2", "abc 1/2"},
		{"none", "", madeID},
		{"too long", strings.Repeat("x", 129), madeID},
		{"the longest", strings.Repeat("x", 128), strings.Repeat("x", 128)},
		{"a newline", "a\nlevel=error", madeID},
		{"not ASCII", "é", madeID},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var seen string
			b := setup(t, func(w http.ResponseWriter, r *http.Request) error {
				seen = httpkit.CorrelationID(r.Context())
				return ok(w, r)
			})
			w, _ := b.call(t, http.MethodGet, "/thing/1", "X-Correlation-Id", row.sent)
			if got := w.Header().Get("X-Correlation-Id"); got != row.want || seen != row.want {
				t.Errorf("got id %q in the response and %q in the handler, want %q", got, seen, row.want)
			}
			if !strings.Contains(b.logs.String(), `"correlation_id":"`+row.want+`"`) {
				t.Errorf("got log %s, want correlation id %q", b.logs, row.want)
			}
		})
	}
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	b := setup(t, ok)
	b.call(t, http.MethodGet, "/thing/a-name?q=a-query", "User-Agent", "an-agent")
	var line map[string]any
	if err := json.Unmarshal(b.logs.Bytes(), &line); err != nil {
		t.Fatalf("got log %s, want one line", b.logs)
	}
	delete(line, "time")
	want := map[string]any{
		"level": "INFO", "msg": "request", "correlation_id": madeID, "method": "GET", "route": "/thing/{id}",
		"status": 200.0, "bytes": 23.0, "duration": 0.0, "identity": "localhost",
	}
	if fmt.Sprint(line) != fmt.Sprint(want) {
		t.Errorf("got line %v, want %v", line, want)
	}
}

// TestLinesOfARequestNameItsCaller checks the log lines of a handler and of its failure.
func TestLinesOfARequestNameItsCaller(t *testing.T) {
	t.Parallel()
	b := setup(t, func(_ http.ResponseWriter, r *http.Request) error {
		httpkit.Log(r.Context()).Info("a line")
		return errors.New("a failure")
	})
	b.call(t, http.MethodGet, "/thing/1")
	lines := strings.Split(strings.TrimSpace(b.logs.String()), "\n")
	if len(lines) != 3 {
		t.Errorf("got %d lines, want 3", len(lines))
	}
	for _, line := range lines {
		if !strings.Contains(line, `"identity":"localhost"`) {
			t.Errorf("got the line %s, want one with the identity", line)
		}
	}
}

func TestInvalidQueryNamesTheParameter(t *testing.T) {
	t.Parallel()
	b := setup(t, ok)
	for query, field := range map[string]string{"x=1": "x", "q=1&q=2": "q", "Q=1": "Q", "q=%zz": "", "q=1;x=2": ""} {
		w, p := b.call(t, http.MethodGet, "/thing/1?"+query)
		if w.Code != 400 || p.Field != field {
			t.Errorf("?%s: got %d for %q, want 400 for %q", query, w.Code, p.Field, field)
		}
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	route := httpkit.Route{Method: http.MethodGet, Pattern: "/a", Access: httpkit.ForClients, Handle: ok}
	scoped := route
	scoped.Scope = access.RunsRead
	_, err := httpkit.New(httpkit.Config{}, route, scoped, scoped, httpkit.Route{Method: http.MethodGet, Pattern: "/b"},
		httpkit.Route{Method: http.MethodGet, Pattern: "/c", Access: httpkit.ForAll, Scope: access.RunsRead, Handle: ok})
	for _, says := range []string{"clock", "AUTH_TOKEN", `GET /a: got the scope ""`, "conflicts", "/b", `GET /c: got the scope "runs:read"`} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got error %[2]v, want %[1]s in it", says, err)
		}
	}
}

func TestDisconnectedClientIsLogged(t *testing.T) {
	t.Parallel()
	b := setup(t, func(_ http.ResponseWriter, r *http.Request) error { return fmt.Errorf("x: %w", r.Context().Err()) })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := httptest.NewRequest(http.MethodGet, "/thing/1", nil).WithContext(ctx)
	r.Host = "localhost"
	func() {
		defer func() { _ = recover() }() // as net/http does
		b.handler.ServeHTTP(httptest.NewRecorder(), r)
	}()
	if !strings.Contains(b.logs.String(), `"status":499`) || strings.Contains(b.logs.String(), "ERROR") {
		t.Errorf("got log %s, want status 499 without an error", b.logs)
	}
}

// TestConcurrentWritesAreBounded blocks two requests in their handler. A third must be refused,
// reads and workers must be served, and the end of a request must free its place.
func TestConcurrentWritesAreBounded(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	b := setup(t, func(_ http.ResponseWriter, r *http.Request) error {
		if r.Header.Get("X-Hold") != "" {
			entered <- struct{}{}
			<-release
		}
		return nil
	}, func(c *httpkit.Config) { c.MaxWrites, c.Tokens = 2, nil })
	ended := make(chan struct{})
	for range 2 {
		go func() {
			b.call(t, http.MethodPost, "/thing/1", "X-Hold", "1")
			ended <- struct{}{}
		}()
		<-entered
	}
	answer, p := b.call(t, http.MethodPost, "/thing/1")
	if answer.Code != http.StatusTooManyRequests || p.Code != string(fault.Throttled) || answer.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %+v, want 429 THROTTLED with Retry-After", answer.Code, p)
	}
	for method, path := range map[string]string{http.MethodGet: "/thing/1", http.MethodPost: "/worker"} {
		if answer, _ := b.call(t, method, path); answer.Code != http.StatusOK {
			t.Errorf("%s %s: got %d, want 200", method, path, answer.Code)
		}
	}
	close(release)
	<-ended
	<-ended
	if answer, _ := b.call(t, http.MethodPost, "/thing/1"); answer.Code != http.StatusOK {
		t.Errorf("got %d after the others ended, want 200", answer.Code)
	}
}

// noBudget returns the fault of a task that a budget does not allow.
func noBudget(scope string, part budget.Part) error {
	return (&port.NoBudget{Shortage: budget.Shortage{Scope: scope, Part: part}}).Fault()
}

func TestExhaustedBudgetSaysThatWaitingIsUseless(t *testing.T) {
	t.Parallel()
	b := setup(t, func(http.ResponseWriter, *http.Request) error { return noBudget("project:p", budget.Cost) })
	if _, p := b.call(t, http.MethodGet, "/thing/1"); p.PolicyLabel != "budget" || p.Retriable == nil || *p.Retriable || p.Retryable || p.RetryAfterMS != 60_000 {
		t.Errorf("got %+v, want the policy budget and no retry", p)
	}
}
